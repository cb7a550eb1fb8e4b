// A long JSON value as its text. As JavaScript values, JSON takes 20 to 40 times the memory that it takes as text if it has many short
// values, and what tools return may be in memory for as long as its turn runs.

import { randomBytes } from 'node:crypto';

/** Shorter ones are kept as values. */
const LONG_CHARACTERS = 16 * 1024;

/** What is in place of the texts while a value with them is written. It is not known outside of this process. */
const MARK = randomBytes(16).toString('hex');
let marked: JsonText[] | undefined;

/** In place of the value: `JSON.stringify` writes the value. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toJSON(): unknown {
    if (!marked) return JSON.parse(this.text);
    return MARK + (marked.push(this) - 1);
  }
}

/** `JSON.stringify`, which does not parse the texts in the value for it. */
export function jsonWithTexts(value: unknown): string {
  const [json, texts] = withMarks(value);
  if (texts.length === 0) return json;
  const [begin, ...pieces] = json.split(`"${MARK}`);
  const rest = pieces.map((piece) => {
    const end = piece.indexOf('"');
    return texts[Number(piece.slice(0, end))]!.text + piece.slice(end + 1);
  });
  return [begin, ...rest].join('');
}

/** The value as it is sent, with a string in place of each text in it. */
export function withoutTexts(value: unknown): unknown {
  return JSON.parse(withMarks(value)[0]);
}

function withMarks(value: unknown): [json: string, texts: readonly JsonText[]] {
  const texts: JsonText[] = [];
  marked = texts;
  try {
    return [JSON.stringify(value), texts];
  } finally {
    marked = undefined;
  }
}

/** The value, or its text if it is a list or an object and long. */
export function shortOrText(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || value instanceof JsonText) return value;
  const text = JSON.stringify(value);
  return text.length > LONG_CHARACTERS ? new JsonText(text) : value;
}

/** `shortOrText` for JSON as the database has it: a long list or object is not parsed. */
export function shortOrTextOf(json: string): unknown {
  const isLong = json.length > LONG_CHARACTERS && (json.startsWith('{') || json.startsWith('['));
  return isLong ? new JsonText(json) : JSON.parse(json);
}

/** A chunk, or a part of a message, whose output is kept as its text if it is long. */
export function withShortOutput<T extends object>(item: T): T {
  return 'output' in item && item.output !== undefined ? { ...item, output: shortOrText(item.output) } : item;
}

/** The JSON of a value, which is not parsed for it. `undefined` is written as null. */
export function jsonOf(value: unknown): string {
  return value instanceof JsonText ? value.text : JSON.stringify(value ?? null);
}

/** The JSON of a list of chunks or of parts of a message, whose outputs are not parsed for it. */
export function jsonOfList(items: readonly (string | object)[]): string {
  return `[${items.map(jsonOfItem).join(',')}]`;
}

function jsonOfItem(item: string | object): string {
  if (typeof item === 'string' || !('output' in item) || !(item.output instanceof JsonText))
    return JSON.stringify(item);
  const { output, ...rest } = item;
  return `${JSON.stringify({ ...rest, output: null }).slice(0, -'null}'.length)}${output.text}}`;
}
