/**
 * Follows one turn of a session as a UI message stream of the AI SDK.
 *
 * The stream ends when the turn does, or when only the page can continue it: with a decision or the result of a client tool. The
 * AI SDK sends those with the next request, which continues the message after `after`.
 */
import type { UIMessageChunk } from 'ai';
import { cursorOf, isAfter } from '../cursor.ts';
import type { Envelope, FilePart } from '../types.generated.ts';
import { type FileUrl, type SignalboxMetadata, TurnMessage } from './turn-message.ts';

export interface TurnStreamOptions {
  /** Default: the turn of the first chunk. Chunks of earlier turns are skipped. */
  turn?: number | undefined;
  /** The message has what comes up to this position; nothing of it is repeated. `envelopes` must start with the turn all the same. */
  after?: string | null | undefined;
  /**
   * What is known to have happened: up to this position the stream does not end, because whatever the session waited for there
   * may be over.
   */
  until?: string | null | undefined;
  /** Approvals and client tool calls (`op_…`, `call_…`) that the page has answered, or that it leaves to others. */
  answered?: ReadonlySet<string> | undefined;
  /** Whether the page decides this approval; otherwise the stream goes through it. Default: it decides each. */
  decides?: ((operationId: string) => boolean | Promise<boolean>) | undefined;
  /** The URL of a file that a tool returned. Default: `signalbox:file_…`, which a page has to resolve. */
  fileUrl?: FileUrl | undefined;
}

/** The id of the assistant message of a turn, in streams and in {@link toUIMessages}. */
export function messageIdOfTurn(turn: number): string {
  return `turn_${turn}`;
}

export function defaultFileUrl({ fileId }: FilePart): string {
  return `signalbox:${fileId}`;
}

/** The chunks of the UI message stream of one turn. */
export async function* toUIMessageChunks(
  envelopes: AsyncIterable<Envelope>,
  options: TurnStreamOptions = {},
): AsyncGenerator<UIMessageChunk, void, undefined> {
  const { after, until, answered, decides = () => true } = options;
  const message = new TurnMessage({ fileUrl: options.fileUrl ?? defaultFileUrl });
  let { turn } = options;
  let metadata: SignalboxMetadata | undefined;
  let last: string | undefined;

  /** Whether the turn can't continue without the page. */
  const waitsForPage = async () => {
    const { operationIds, toolCallIds } = message.awaited;
    if (toolCallIds.some((id) => !answered?.has(id))) return true;
    for (const id of operationIds) if (!answered?.has(id) && (await decides(id))) return true;
    return false;
  };

  reading: for await (const { chunks, sessionId } of envelopes) {
    for (const chunk of chunks) {
      if (chunk.turn === 0 || (turn !== undefined && chunk.turn < turn)) continue;
      turn ??= chunk.turn;
      if (chunk.turn > turn) break reading;
      const cursor = cursorOf(chunk);
      const shown = message.push(chunk);
      if (!after || isAfter(cursor, after)) {
        if (!metadata) {
          metadata = { sessionId, turn };
          const start = { type: 'start', messageMetadata: { ...metadata } } as const;
          yield after ? start : { ...start, messageId: messageIdOfTurn(turn) };
        }
        metadata.cursor = cursor;
        yield* shown;
      }
      last = cursor;
    }
    // Not after each chunk: a later one of the same envelope may say that a wait is over.
    if (last && !(until && isAfter(until, last)) && (message.hasEnded || (await waitsForPage()))) break;
  }
  if (!message.hasEnded) yield* message.callsForPage(message.awaited.toolCallIds.filter((id) => !answered?.has(id)));
  yield* message.finish(metadata);
}

/**
 * {@link toUIMessageChunks} as a stream, for the AI SDK. `onEnd` is called once: when the stream is complete, fails or is cancelled.
 * Abort reading `envelopes` there, because a cancelled stream does not wait for the next one.
 */
export function toUIMessageStream(
  envelopes: AsyncIterable<Envelope>,
  {
    onEnd,
    ...options
  }: TurnStreamOptions & { onEnd?: ((how: 'complete' | 'failed' | 'cancelled') => void) | undefined } = {},
): ReadableStream<UIMessageChunk> {
  const chunks = toUIMessageChunks(envelopes, options);
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await chunks.next();
        if (!done) return controller.enqueue(value);
        controller.close();
        onEnd?.('complete');
      } catch (error) {
        controller.error(error);
        onEnd?.('failed');
      }
    },
    cancel() {
      onEnd?.('cancelled');
      // It ends when the read in progress does.
      void chunks.return().catch(() => undefined);
    },
  });
}
