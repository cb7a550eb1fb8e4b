// Creates an agent, opens a session and prints the text as it streams.
//
//   SIGNALBOX_API_KEY=sbk_… npm exec -c 'node examples/quickstart.ts'
import './explain.ts';
import { Signalbox } from '@signalbox/client';

const client = new Signalbox();
const { agentId } = await client.agents.create({
  name: 'Greeter',
  // A model for tests, which needs no network. A real one: `model: 'anthropic/claude-sonnet-5-5'`.
  model: { provider: 'scripted', model: 'greeter', settings: { script: [{ text: 'You said: {{input}}\n' }] } },
});
const { sessionId } = await client.sessions.open({
  agentId,
  environment: 'production',
  input: 'Hello',
  closeOnIdle: true,
});
for await (const { chunks } of client.sessions.stream(sessionId)) {
  for (const chunk of chunks) if (chunk.type === 'message.chunk') process.stdout.write(chunk.delta);
}
