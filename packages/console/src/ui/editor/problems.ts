// The problems of a text, with their places: its syntax, its schema, and those that the field's owner found.
import { syntaxTree } from '@codemirror/language';
import type { Diagnostic } from '@codemirror/lint';
import type { EditorState } from '@codemirror/state';
import type { FieldError } from '@signalbox/contract';
import { pathParts, rangeAt } from './json-nodes.ts';
import type { JsonSchema } from './schema-at.ts';
import { schemaErrors } from './schema-check.ts';

export interface EditorProblem {
  line: number;
  from: number;
  message: string;
}

export async function findProblems(
  state: EditorState,
  { schema, known }: { schema: JsonSchema | undefined; known: readonly FieldError[] },
): Promise<Diagnostic[]> {
  const text = state.doc.toString();
  if (text.trim() === '') return known.filter(({ path }) => path === '').map((one) => placed(state, one));
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return [syntaxProblem(state, String((error as Error).message))];
  }
  const found = schema ? await schemaErrors(schema, value) : [];
  const all = new Map([...known, ...found].map((one) => [`${one.path} ${one.message}`, one]));
  return [...all.values()].map((one) => placed(state, one));
}

function placed(state: EditorState, { path, message }: FieldError): Diagnostic {
  return { ...rangeAt(state, pathParts(path)), severity: 'error', message: path ? `${path} ${message}` : message };
}

/** Browsers say what is wrong in different words, and some not where. */
function syntaxProblem(state: EditorState, said: string): Diagnostic {
  const position = /at position (\d+)/.exec(said)?.[1];
  const isCut = /end of|Unterminated/i.test(said);
  const at = position === undefined ? (isCut ? state.doc.length : firstError(state)) : Number(position);
  const from = Math.min(at, state.doc.length);
  const what = /^(Expected .+?|Bad .+?|Unterminated .+?|No number .+?) in JSON/.exec(said)?.[1];
  const message = what ?? (isCut ? 'The JSON is incomplete' : 'Unexpected character');
  return { from, to: Math.min(from + 1, state.doc.length), severity: 'error', message: `${message}.` };
}

function firstError(state: EditorState): number {
  let found: number | undefined;
  syntaxTree(state).iterate({
    enter: ({ type, from }) => {
      if (type.isError) found ??= from;
      return found === undefined;
    },
  });
  return found ?? 0;
}
