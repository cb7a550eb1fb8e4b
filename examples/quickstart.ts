// Creates an agent, opens a session and prints the text as it streams.
//
//   SIGNALBOX_API_KEY=sbk_… npm exec -c 'node examples/quickstart.ts'
import { Signalbox } from '@signalbox/client';

const client = new Signalbox();

// `scripted` is a built-in test model that needs no network. See docs/guides/models.md for the others.
const agent = await client.agents.create({
  name: 'Greeter',
  model: { provider: 'scripted', model: 'greeter', settings: { script: [{ text: 'You said: {{input}}' }] } },
});
const session = await client.sessions.open({
  agentId: agent.agentId,
  environment: 'production',
  input: 'Hello, Signalbox',
  closeOnIdle: true,
});

for await (const { chunks } of client.sessions.stream(session.sessionId)) {
  for (const chunk of chunks) {
    if (chunk.type === 'message.chunk') process.stdout.write(chunk.delta);
    if (chunk.type === 'session.status') console.log(`\n[${chunk.status}]`);
  }
}
