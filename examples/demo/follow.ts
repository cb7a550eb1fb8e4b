// Follows a session until it ends: prints its chunks and asks the person to decide its approvals.
import type { Chunk, Signalbox, ToolCallChunk, WaitingFor } from '@signalbox/client';
import { decide, type Person } from './person.ts';
import { compact, inside, line, row, Stream, styled } from './terminal.ts';

/** What a scenario does for the session it follows, besides asking the person. */
export interface Following {
  /** A tool call has begun. */
  onToolCall?(call: ToolCallChunk, sessionId: string): Promise<void>;
  /** A turn has ended and no message is queued. Without it, the session closes by itself then. */
  onIdle?(sessionId: string): Promise<void>;
}

export async function follow(
  client: Signalbox,
  sessionId: string,
  person: Person,
  following: Following,
): Promise<void> {
  const text = new Stream('agent');
  for await (const { chunks } of client.sessions.stream(sessionId, {}, { signal: person.signal })) {
    for (const chunk of chunks) {
      if (chunk.type === 'message.chunk') {
        text.write(chunk.delta);
        continue;
      }
      text.end();
      show(chunk);
      if (chunk.type === 'tool.call' && !chunk.notRun) await following.onToolCall?.(chunk, sessionId);
      if (chunk.type === 'session.status' && chunk.waitingFor) await provide(chunk.waitingFor);
      if (chunk.type === 'session.status' && chunk.status === 'idle') await following.onIdle?.(sessionId);
    }
  }

  /** Decides the approvals that the session waits for, and follows its child sessions. */
  async function provide({ operationIds, sessionIds }: WaitingFor): Promise<void> {
    for (const operationId of operationIds) {
      const approval = await client.approvals.get(operationId);
      // Approvals that are still pending are listed again after each decision.
      if (approval.status === 'pending') await decide(client, approval, person);
    }
    for (const child of sessionIds) {
      line();
      await inside(async () => {
        row('session', child);
        await follow(client, child, person, following);
      });
      line();
    }
  }
}

function show(chunk: Chunk): void {
  switch (chunk.type) {
    case 'approval.requested':
      row('approval', `${styled('yellow', 'requested for')} ${chunk.name}(${compact(chunk.input)})`);
      break;
    case 'approval.resolved':
      row('approval', styled(chunk.decision === 'approved' ? 'green' : 'red', chunk.decision));
      break;
    case 'tool.call':
      if (!chunk.notRun) row('tool', `${chunk.tool}(${compact(chunk.input)})`);
      break;
    case 'file.created':
      row('file', `${chunk.file.filename ?? chunk.file.fileId}, ${chunk.file.mediaType}, ${chunk.file.bytes} bytes`);
      break;
    case 'tool.result':
      row(chunk.notRun ? 'not run' : 'result', chunk.error === undefined ? compact(chunk.output) : chunk.error);
      break;
    case 'context.compacted':
      row('compacted', `${chunk.tokensBefore} → ${chunk.tokensAfter} tokens, up to turn ${chunk.untilTurn}`);
      row('summary', styled('dim', chunk.summary));
      break;
    case 'message.reset':
      row('agent', styled('dim', 'the text of this model call is void'));
      break;
    case 'turn.completed':
      row('turn', `ended: ${chunk.stopReason}, ${chunk.usage.inputTokens} tokens in, ${chunk.usage.outputTokens} out`);
      if (chunk.error) row('turn', styled('red', `${chunk.error.code}: ${chunk.error.message}`));
      break;
    case 'session.status':
      row('status', styled(chunk.status === 'failed' ? 'red' : 'cyan', chunk.status) + awaited(chunk.waitingFor));
      break;
  }
}

function awaited(waitingFor: WaitingFor | null): string {
  if (!waitingFor) return '';
  const { type, operationIds, toolCallIds, sessionIds, retryAt, error } = waitingFor;
  if (type === 'model') return ` for the model (${error?.message}), which is called again at ${retryAt}`;
  const what = [
    ...(operationIds.length > 0 ? ['approval'] : []),
    ...(toolCallIds.length > 0 ? ["this program's result"] : []),
    ...(sessionIds.length > 0 ? ['the other agent'] : []),
  ];
  return ` for ${what.join(' and ')}`;
}
