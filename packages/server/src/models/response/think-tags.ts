// Reasoning that a model writes into its text, because its server has no parser for it: `<think>…</think>` before the answer. Only at the
// beginning: later in a text, or in code, it is what the model says.

const TAGS: readonly (readonly [begin: string, end: string])[] = [
  ['<think>', '</think>'],
  ['<thinking>', '</thinking>'],
  ['<thought>', '</thought>'],
  // Mistral, Kimi.
  ['[THINK]', '[/THINK]'],
  ['◁think▷', '◁/think▷'],
];

export interface Piece {
  readonly type: 'text' | 'reasoning';
  readonly text: string;
}

/** Divides a text that arrives in pieces. */
export function createThinkTags(): { push(delta: string): Piece[]; end(): Piece[] } {
  /** What is not decided yet: the beginning, or what may be the beginning of the end of a thought. */
  let held = '';
  /** Undefined: no thought has begun; null: the text has. */
  let end: string | undefined | null;
  let hasThought = false;

  function* read(isEnd: boolean): Generator<Piece> {
    while (held !== '' && end !== null) {
      if (end === undefined) {
        const begins = held.trimStart();
        const tag = TAGS.find(([begin]) => begins.startsWith(begin));
        if (tag) {
          held = begins.slice(tag[0].length);
          end = tag[1];
          hasThought = true;
          continue;
        }
        if (!isEnd && TAGS.some(([begin]) => begin.startsWith(begins))) return;
        // The white space after a thought is not of the text.
        if (hasThought) held = begins;
        end = null;
      } else {
        const at = held.indexOf(end);
        const length = at >= 0 ? at : held.length - (isEnd ? 0 : overlap(held, end));
        if (length > 0) yield { type: 'reasoning', text: held.slice(0, length) };
        held = held.slice(at >= 0 ? at + end.length : length);
        if (at < 0) return;
        end = undefined;
      }
    }
    if (held !== '' && end === null) yield { type: 'text', text: held };
    if (end === null) held = '';
  }

  return {
    push(delta) {
      held += delta;
      return [...read(false)];
    },
    end: () => [...read(true)],
  };
}

/** How much of the text's end is a beginning of the tag. */
function overlap(text: string, tag: string): number {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length -= 1) {
    if (text.endsWith(tag.slice(0, length))) return length;
  }
  return 0;
}
