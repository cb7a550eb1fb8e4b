// An agent that calls another agent. Each has its own instructions and tools; the second runs in a child session.
//
//   SIGNALBOX_API_KEY=sbk_… npm exec -c 'node examples/sub-agent.ts'
import './explain.ts';
import { Signalbox } from '@signalbox/client';

const client = new Signalbox();

// With an outputSchema, the agent's final text is JSON that is checked before the calling agent gets it.
const translator = await client.agents.create({
  name: 'Translator',
  instructions: 'Translate the input into French.',
  model: {
    provider: 'scripted',
    model: 'translator',
    settings: { script: [{ text: '{ "language": "fr", "text": "Bonjour" }', tokenDelayMs: 50 }] },
  },
  outputSchema: {
    type: 'object',
    properties: { language: { type: 'string' }, text: { type: 'string' } },
    required: ['language', 'text'],
  },
});

const writer = await client.agents.create({
  name: 'Writer',
  instructions: 'Write a greeting card. Use the translator for any language other than English.',
  model: {
    provider: 'scripted',
    model: 'writer',
    settings: {
      script: [
        { text: 'I will have it translated.', toolCalls: [{ name: 'translate', input: { input: '{{input}}' } }] },
        { text: 'The card says: {{lastToolResult}}' },
      ],
    },
  },
  tools: [
    { type: 'agent', name: 'translate', description: 'Translates a text into French.', agentId: translator.agentId },
  ],
});

const { sessionId } = await client.sessions.open({
  agentId: writer.agentId,
  environment: 'production',
  input: 'Hello',
  closeOnIdle: true,
  // Shared by the session and its children.
  budget: { maxSteps: 10 },
});

/** Prints the text of a session, and that of its children while it waits for them. */
async function follow(id: string, indent = ''): Promise<void> {
  let line = '';
  for await (const { chunks } of client.sessions.stream(id)) {
    for (const chunk of chunks) {
      if (chunk.type === 'message.chunk') line += chunk.delta;
      if (chunk.type === 'session.status') {
        if (line) console.log(indent + line);
        line = '';
        // A child is a session like any other: you can stream it, resolve its approvals and interrupt it.
        for (const child of chunk.waitingFor?.sessionIds ?? []) await follow(child, `${indent}  `);
      }
    }
  }
}

await follow(sessionId);
for await (const child of client.sessions.list({ parentSessionId: sessionId })) {
  console.log(`child session: ${child.status}, ${child.usage.steps} step`);
}
