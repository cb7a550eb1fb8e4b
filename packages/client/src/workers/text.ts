/**
 * Sends text, reasoning and tool input to the service in batches and in order, one request at a time. The first delta is sent immediately, because an end
 * user waits for it; those that soon follow are sent together.
 */
import type { Sleep } from '../time.ts';
import type { WorkerDelta } from '../types.generated.ts';

export interface TextSender {
  /** Resolves when there is room for more, not when it is sent; rejects with the error of a failed request. */
  add(delta: WorkerDelta): Promise<void>;
  /** Resolves when all of it is sent. */
  flush(): Promise<void>;
  /** Text that is added from now on is kept until `open`. Call `flush` first. */
  close(): void;
  open(): void;
}

/** Some tokens of a model's response; too short to notice. */
const gatherMs = 25;
/** The limit of one request: its body stays below the service's limit of 1 MiB even if every character is escaped. */
const maxCharacters = 100_000;
const maxPieces = 1_000;
/** How far a program can be ahead of the network. */
const maxWaiting = 500_000;

/** `send` is called with 1 to 1,000 deltas, and never again after it has failed. */
export function createTextSender(send: (pieces: WorkerDelta[]) => Promise<void>, sleep: Sleep): TextSender {
  let waiting: WorkerDelta[] = [];
  let size = 0;
  /** A high surrogate that waits for its other half. */
  let carry = '';
  let isOpen = true;
  let hurry = new AbortController();
  let sending: Promise<void> | undefined;
  /** The error of a failed request: nothing after it is sent, or the text would have a gap. */
  let failure: { error: unknown } | undefined;

  async function drain(): Promise<void> {
    while (isOpen && waiting.length > 0) {
      await send(take());
      await sleep(gatherMs, hurry.signal).catch(() => {});
    }
  }

  function push(delta: WorkerDelta): void {
    const last = waiting.at(-1);
    // Text stays in the pieces in which it came. Other deltas have more around them than in them, so those that wait are joined.
    const isJoined = typeof delta !== 'string' && last && isSamePart(last, delta);
    if (isJoined && textOf(last).length < maxCharacters / 2) last.delta += delta.delta;
    else waiting.push(delta);
  }

  function take(): WorkerDelta[] {
    let characters = 0;
    const count = waiting.findIndex((piece, index) => {
      characters += textOf(piece).length;
      return index > 0 && (characters > maxCharacters || index >= maxPieces);
    });
    const pieces = count < 0 ? waiting : waiting.slice(0, count);
    waiting = count < 0 ? [] : waiting.slice(count);
    size -= pieces.reduce((sum, piece) => sum + textOf(piece).length, 0);
    return pieces;
  }

  function begin(): void {
    if (!isOpen || failure || waiting.length === 0 || sending) return;
    sending = drain()
      .catch((error) => {
        failure = { error };
      })
      .finally(() => {
        sending = undefined;
        begin();
      });
  }

  return {
    async add(delta) {
      // A program without types may pass anything.
      const text: unknown = delta == null ? undefined : textOf(delta);
      if (typeof text !== 'string') throw new TypeError('append takes a string');
      const isText = typeof delta === 'string';
      const whole = isText ? wholeText(carry + text) : { text: cleanText(text), carry };
      carry = whole.carry;
      for (const piece of splitText(whole.text)) {
        push(isText ? piece : { ...delta, delta: piece });
        size += piece.length;
      }
      begin();
      while (size > maxWaiting && sending) await sending;
      if (failure) throw failure.error;
    },
    async flush() {
      if (carry !== '') {
        waiting.push('\uFFFD');
        carry = '';
      }
      hurry.abort();
      begin();
      while (sending) await sending;
      hurry = new AbortController();
      if (failure) throw failure.error;
    },
    close() {
      isOpen = false;
    },
    open() {
      isOpen = true;
      begin();
    },
  };
}

type Part = Exclude<WorkerDelta, string>;

function isSamePart(one: WorkerDelta, other: Part): one is Part {
  if (typeof one === 'string' || one.type !== other.type) return false;
  return one.type === 'reasoning' || (other.type === 'toolInput' && one.index === other.index);
}

function textOf(delta: WorkerDelta): string {
  return typeof delta === 'string' ? delta : delta.delta;
}

/** Without what the service refuses: NUL and lone surrogates. */
export function cleanText(text: string): string {
  return text.replaceAll('\0', '').toWellFormed();
}

/** The same, but keeps a high surrogate at the end, whose other half may follow. */
function wholeText(text: string): { text: string; carry: string } {
  const last = text.charCodeAt(text.length - 1);
  const at = last >= 0xd800 && last <= 0xdbff ? text.length - 1 : text.length;
  return { text: cleanText(text.slice(0, at)), carry: text.slice(at) };
}

function* splitText(text: string): Generator<string> {
  for (let from = 0; from < text.length; ) {
    let to = Math.min(text.length, from + maxCharacters);
    const last = text.charCodeAt(to - 1);
    if (to < text.length && last >= 0xd800 && last <= 0xdbff) to -= 1;
    yield text.slice(from, to);
    from = to;
  }
}
