// An input while a person edits it: as a form where each field is one text, number, truth value or null; else as JSON.
import { escapeInvisible, splitInvisible } from '../../text-format.ts';

/** An object that is no array. */
export type Fields = Record<string, unknown>;

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The same JSON, in the same order. */
export function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

export type Draft = { as: 'form'; fields: Record<string, string> } | { as: 'json'; text: string };

export type Read = { value: unknown } | { problems: Problem[] };

/** `field` is undefined where the whole is meant. */
export interface Problem {
  field?: string;
  text: string;
}

// A form of more is worse than the JSON.
const MAX_FIELDS = 30;

/** Whether a form can show and hold all of it: no values in values, no characters that an input field would hide. */
export function fitsForm(input: unknown): input is Fields {
  if (!isFields(input)) return false;
  const values = Object.values(input);
  return (
    values.length > 0 &&
    values.length <= MAX_FIELDS &&
    values.every((value) => value === null || typeof value !== 'object') &&
    [...Object.keys(input), ...values].every((one) => typeof one !== 'string' || splitInvisible(one).length === 1)
  );
}

export function draftOf(input: unknown): Draft {
  return fitsForm(input) ? formOf(input) : jsonOf(input);
}

export function formOf(input: Fields): Draft {
  const fields = Object.entries(input).map(([name, value]) => [name, value === null ? '' : String(value)]);
  return { as: 'form', fields: Object.fromEntries(fields) };
}

export function jsonOf(input: unknown): Draft {
  return { as: 'json', text: escapeInvisible(JSON.stringify(input, null, 2) ?? 'null') };
}

const jsonNumber = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** The input that a draft stands for; each field of a form keeps the type that it has in `original`. */
export function readDraft(draft: Draft, original: unknown): Read {
  if (draft.as === 'json') {
    try {
      return { value: JSON.parse(draft.text) };
    } catch (error) {
      return { problems: [{ text: `This is not valid JSON: ${(error as Error).message}` }] };
    }
  }
  const problems: Problem[] = [];
  const value: Fields = {};
  for (const [field, text] of Object.entries(draft.fields)) {
    const was = isFields(original) ? original[field] : undefined;
    if (typeof was === 'number' && !jsonNumber.test(text.trim())) problems.push({ field, text: 'Enter a number.' });
    else define(value, field, typed(text, was));
  }
  return problems.length > 0 ? { problems } : { value };
}

// A field may be named `__proto__`: an assignment would not make it a field.
function define(fields: Fields, name: string, value: unknown): void {
  Object.defineProperty(fields, name, { value, enumerable: true, configurable: true, writable: true });
}

function typed(text: string, was: unknown): unknown {
  if (typeof was === 'number') return Number(text);
  if (typeof was === 'boolean') return text === 'true';
  return was === null && text === '' ? null : text;
}

/** What the service says of an edited input (`/cents must be number; / must have …`), at the fields that it names. */
export function problemsOf(message: string, fields: readonly string[]): Problem[] {
  const rest: string[] = [];
  const problems: Problem[] = [];
  for (const part of message.replace(/^does not match the tool's schema: /, '').split('; ')) {
    const field = fields.find((name) => part.startsWith(`/${name} `));
    if (field === undefined) rest.push(part.replace(/^\/ /, ''));
    else problems.push({ field, text: part.slice(field.length + 2) });
  }
  return rest.length > 0 ? [...problems, { text: `Doesn’t match the tool’s schema: ${rest.join('; ')}` }] : problems;
}
