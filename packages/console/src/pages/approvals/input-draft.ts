// An input that the user edits: as a form if each field is a text, number, boolean or null; else as JSON.
import { escapeInvisible, splitInvisible } from '../../lib/text-format.ts';

/** A JSON object, not an array. */
export type Fields = Record<string, unknown>;

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether two values are the same JSON in the same order of keys. */
export function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

export type InputDraft = { as: 'form'; fields: Record<string, string> } | { as: 'json'; text: string };

export type Read = { value: unknown } | { problems: Problem[] };

/** `field` is undefined if the problem concerns the whole input. */
export interface Problem {
  field?: string;
  text: string;
}

// For more fields the JSON is easier to read than a form.
const MAX_FIELDS = 30;

/** Whether a form can show and keep all of it: no nested values, no characters that an input field would hide. */
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

export function draftOf(input: unknown): InputDraft {
  return fitsForm(input) ? formOf(input) : jsonOf(input);
}

export function formOf(input: Fields): InputDraft {
  const fields = Object.entries(input).map(([name, value]) => [name, value === null ? '' : String(value)]);
  return { as: 'form', fields: Object.fromEntries(fields) };
}

export function jsonOf(input: unknown): InputDraft {
  return { as: 'json', text: escapeInvisible(JSON.stringify(input, null, 2) ?? 'null') };
}

const jsonNumber = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** The input of a draft; each field of a form keeps the type that it has in `original`. */
export function readDraft(draft: InputDraft, original: unknown): Read {
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

// Assigning a field named `__proto__` would not define it.
function define(fields: Fields, name: string, value: unknown): void {
  Object.defineProperty(fields, name, { value, enumerable: true, configurable: true, writable: true });
}

function typed(text: string, was: unknown): unknown {
  if (typeof was === 'number') return Number(text);
  if (typeof was === 'boolean') return text === 'true';
  return was === null && text === '' ? null : text;
}

/** The service's errors about an edited input (`/cents must be number; / must have …`), by the fields that they name. */
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
