// Decides whether what clients saw of a Session, and what a tool's server saw of its calls, is what the service promises
// (P1–P4, P7). It knows the interface alone, and nothing of how the service works.
import type { Chunk } from '@signalbox/client';

/** What the tool's server saw: how often each call came, by its idempotency key, and whether it may repeat. */
export interface SeenCall {
  tool: string;
  times: number;
}

export interface History {
  /** As a reader saw it who resumed through every failure. */
  streamed: readonly Chunk[];
  /** As it is stored. */
  stored: readonly Chunk[];
  /** By operation id. */
  calls: ReadonlyMap<string, SeenCall>;
  /** The text of each of the model's answers, in order. */
  answers: readonly string[];
  /** Tools that say that they may be called again. */
  repeatable: ReadonlySet<string>;
}

/** Every promise that the history breaks, in words; none where it keeps them all. */
export function brokenPromises({ streamed, stored, calls, answers, repeatable }: History): string[] {
  const broken: string[] = [];
  const check = (kept: boolean, promise: string) => {
    if (!kept) broken.push(promise);
  };
  check(
    JSON.stringify(streamed) === JSON.stringify(stored),
    'a resumed stream is the journal, without holes or doubles',
  );
  const isNext = (chunk: Chunk, before: Chunk | undefined) =>
    before === undefined
      ? chunk.turn === 1 && chunk.seq === 1
      : (chunk.turn === before.turn && chunk.seq === before.seq + 1) ||
        (chunk.turn === before.turn + 1 && chunk.seq === 1);
  check(
    stored.every((chunk, index) => isNext(chunk, stored[index - 1])),
    'the journal has no gaps',
  );
  const ends = stored.filter(
    ({ type, ...chunk }) => type === 'session.status' && 'status' in chunk && isEnd(chunk.status),
  );
  check(ends.length === 1 && ends[0] === stored.at(-1), 'a session ends once, and last');
  check(textOf(stored) === answers.join(''), `the text is what the model said, not ${JSON.stringify(textOf(stored))}`);

  const started = stored.filter((chunk) => chunk.type === 'tool.call');
  for (const { toolCallId, tool } of started) {
    const results = stored.filter((chunk) => chunk.type === 'tool.result' && chunk.toolCallId === toolCallId);
    const [result] = results;
    check(results.length === 1, `${tool} has one result`);
    // One id under two prefixes.
    const { times } = calls.get(toolCallId.replace(/^call_/, 'op_')) ?? { times: 0 };
    if (result?.type !== 'tool.result') continue;
    if (result.error === undefined) check(times > 0, `${tool} ran where it has a result`);
    if (!repeatable.has(tool)) check(times <= 1, `${tool} ran at most once, not ${times} times`);
    if (result.outcomeUnknown) check(!repeatable.has(tool), `${tool} may be repeated, so its outcome is known`);
  }
  const shown = new Set(started.map(({ toolCallId }) => toolCallId.replace(/^call_/, 'op_')));
  check(
    [...calls.keys()].every((operationId) => shown.has(operationId)),
    'nothing runs that was not shown to start',
  );
  return broken;
}

function isEnd(status: string): boolean {
  return ['completed', 'failed', 'cancelled'].includes(status);
}

/** What is left of the text after what was taken back. */
function textOf(chunks: readonly Chunk[]): string {
  let kept: { seq: number; delta: string }[] = [];
  for (const chunk of chunks) {
    if (chunk.type === 'message.reset') kept = kept.filter(({ seq }) => seq < chunk.fromSeq);
    if (chunk.type === 'message.chunk') kept.push(chunk);
  }
  return kept.map(({ delta }) => delta).join('');
}
