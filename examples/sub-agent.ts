// An Agent that uses another: each has its own instructions and tools, the second runs in a child Session of the first's.
//
//   SIGNALBOX_API_KEY=sbk_… npm exec -c 'node examples/sub-agent.ts'
import { Signalbox } from '@signalbox/client';

const client = new Signalbox({
  apiKey: process.env.SIGNALBOX_API_KEY ?? '',
  baseUrl: process.env.SIGNALBOX_URL ?? 'http://127.0.0.1:4500',
});

// With an outputSchema its answer is JSON, checked before the other Agent gets it.
const translator = await client.agents.create({
  name: 'Translator',
  instructions: 'Translate what you are given into French.',
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
  instructions: 'Write a card. Let the translator translate what is not English.',
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
  // For the Session and its children together.
  budget: { maxSteps: 10 },
});

/** Prints what a Session says, and what its children say while it waits for them. */
async function follow(id: string, indent = ''): Promise<void> {
  let line = '';
  for await (const { chunks } of client.sessions.stream(id)) {
    for (const chunk of chunks) {
      if (chunk.type === 'message.chunk') line += chunk.delta;
      if (chunk.type === 'session.status') {
        if (line) console.log(indent + line);
        line = '';
        // A child is a Session like any other: to be followed, to be asked for approvals, to be interrupted.
        for (const child of chunk.waitingFor?.sessionIds ?? []) await follow(child, `${indent}  `);
      }
    }
  }
}

await follow(sessionId);
for await (const child of client.sessions.list({ parentSessionId: sessionId })) {
  console.log(`A child was opened: ${child.status}, ${child.usage.steps} step`);
}
