// The shortest program: an Agent, a Session, and what it says as it says it.
//
//   SIGNALBOX_API_KEY=sbk_… npm exec -c 'node examples/quickstart.ts'
import { Signalbox } from '@signalbox/client';

const client = new Signalbox({
  apiKey: process.env.SIGNALBOX_API_KEY ?? '',
  baseUrl: process.env.SIGNALBOX_URL ?? 'http://127.0.0.1:4500',
});

// `scripted` is a model that needs no network; for the others see docs/models.md.
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
