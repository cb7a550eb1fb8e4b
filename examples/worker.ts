// Your own loop: an Agent whose turns this program runs, with tools that Signalbox asks people about.
//
//   SIGNALBOX_API_KEY=sbk_… npm exec -c 'node examples/worker.ts'
import { type Message, Signalbox } from '@signalbox/client';

const client = new Signalbox({
  apiKey: process.env.SIGNALBOX_API_KEY ?? '',
  baseUrl: process.env.SIGNALBOX_URL ?? 'http://127.0.0.1:4500',
});

const queue = 'refunds';
const agent = await client.agents.create({
  name: 'Refunds',
  model: { provider: 'worker', queue },
  tools: [
    {
      type: 'client',
      name: 'refund',
      description: 'Gives money back.',
      inputSchema: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
      effectful: true,
      approval: 'always',
    },
  ],
});

interface Step {
  text: string;
  calls: { tool: string; input: unknown }[];
}

// Stands for your model: from all that was said to the next step.
function think(messages: readonly Message[]): Step {
  const part = messages.at(-1)?.content.at(-1);
  if (part?.type === 'text') return { text: 'I will ask. ', calls: [{ tool: 'refund', input: { order: part.text } }] };
  if (part?.type === 'tool_result' && part.error === undefined) return { text: `Done: ${part.output}.`, calls: [] };
  return { text: 'It was not to be.', calls: [] };
}

const stopping = new AbortController();
process.once('SIGTERM', () => stopping.abort());
const running = client.workers.run({
  queue,
  signal: stopping.signal,
  // What runs a `client` tool, once a person has agreed. It is shown, logged and kept as every tool's call.
  tools: { refund: ({ order }: { order: string }) => `order ${order} was refunded` },
  onTurn: async (turn) => {
    while (true) {
      // After a crash, or a wait that was long, it is called anew: what has happened is in `turn.messages`.
      const { text, calls } = think(turn.messages);
      await turn.append(text);
      if (calls.length === 0) return;
      // Denials and failures too are results that `turn.messages` holds afterwards.
      await Promise.allSettled(calls.map(({ tool, input }) => turn.callTool(tool, input)));
    }
  },
});

const { sessionId } = await client.sessions.open({
  agentId: agent.agentId,
  environment: 'production',
  input: '1017',
  closeOnIdle: true,
});
for await (const { chunks } of client.sessions.stream(sessionId)) {
  for (const chunk of chunks) {
    if (chunk.type === 'message.chunk') process.stdout.write(chunk.delta);
    if (chunk.type === 'approval.requested') await client.approvals.approve(chunk.operationId); // a person, elsewhere
  }
}
process.stdout.write('\n');
stopping.abort();
await running;
