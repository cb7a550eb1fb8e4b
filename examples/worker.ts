// Your own loop: an agent whose turns this program runs, with a tool that needs approval.
//
//   SIGNALBOX_API_KEY=sbk_… npm exec -c 'node examples/worker.ts'
import './explain.ts';
import { type Message, Signalbox } from '@signalbox/client';

const client = new Signalbox();

const queue = 'refunds';
const agent = await client.agents.create({
  name: 'Refunds',
  model: { provider: 'worker', queue },
  tools: [
    {
      type: 'client',
      name: 'refund',
      description: 'Refunds an order.',
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

// A stand-in for your model: takes the transcript so far, returns the next step.
function think(messages: readonly Message[]): Step {
  const part = messages.at(-1)?.content.at(-1);
  if (part?.type === 'text')
    return { text: 'I will ask for approval. ', calls: [{ tool: 'refund', input: { order: part.text } }] };
  if (part?.type === 'tool_result' && part.error === undefined) return { text: `Done: ${part.output}.`, calls: [] };
  return { text: 'The refund was not made.', calls: [] };
}

const stopping = new AbortController();
process.once('SIGTERM', () => stopping.abort());
const running = client.workers.run({
  queue,
  signal: stopping.signal,
  // Runs the `client` tool once the call is approved. The call is in the journal and the transcript like any other.
  tools: { refund: ({ order }: { order: string }) => `order ${order} was refunded` },
  onTurn: async (turn) => {
    while (true) {
      // After a crash or a long wait, onTurn is called again. `turn.messages` has everything that happened before.
      const { text, calls } = think(turn.messages);
      await turn.append(text);
      if (calls.length === 0) return;
      // A denied or failed call rejects, and is a result in `turn.messages` as well.
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
    if (chunk.type === 'approval.requested') await client.approvals.approve(chunk.operationId); // in reality, someone in another app
  }
}
process.stdout.write('\n');
stopping.abort();
await running;
