// Part of the worker examples: opens a session, prints its text, and approves its calls, which someone in another app would do.
import type { Signalbox } from '@signalbox/client';

export async function showSession(client: Signalbox, agentId: string, input: string): Promise<void> {
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production', input, closeOnIdle: true });
  for await (const { chunks } of client.sessions.stream(sessionId)) {
    for (const chunk of chunks) {
      if (chunk.type === 'message.chunk') process.stdout.write(chunk.delta);
      if (chunk.type === 'approval.requested') {
        process.stdout.write(`[approved: ${chunk.name} ${JSON.stringify(chunk.input)}] `);
        await client.approvals.approve(chunk.operationId);
      }
    }
  }
  const { status, error, usage } = await client.sessions.get(sessionId);
  if (status === 'failed') throw new Error(`The session failed: ${error?.message}`);
  console.log(`\n${usage.steps} steps, ${usage.inputTokens + usage.outputTokens} tokens`);
}
