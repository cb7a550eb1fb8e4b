// The state that the form and the JSON share: the value, and the text of each JSON field that is invalid. The JSON of the whole
// definition is the field at the path ''. A field shows its error after the user has changed it, and every field after the user
// tried to save.
import type { FieldError } from '@signalbox/contract';
import { createContext, type ReactNode, useContext, useDeferredValue, useMemo, useState } from 'react';
import { type Definition, problemsOf, sameJson, whole } from './definition.ts';
import { isRecord } from './model.ts';
import { isWithin, valueAt, withValueAt } from './path.ts';

interface State {
  value: Definition;
  /** Invalid JSON texts with their error, by the path of their field. */
  unread: Readonly<Record<string, { text: string; message: string }>>;
  /** The paths that the user has changed. */
  touched: ReadonlySet<string>;
  tried: boolean;
  /** The errors that the service returned, each until its field changes. */
  refused: readonly FieldError[];
}

/** What a user would lose. */
export type Edits = Pick<State, 'value' | 'unread'>;

export interface AgentDraft {
  value: Definition;
  edits: Edits;
  get(path: string): unknown;
  /** Sets a value; undefined removes the field. `visited`: the path to mark as changed, by default `path`; null: none. */
  set(path: string, value: unknown, visited?: string | null): void;
  /** The text of a JSON field, if it is invalid. */
  unreadText(path: string): string | undefined;
  /** Sets the text of a JSON field, valid or not. Empty text removes the value. */
  setText(path: string, text: string): void;
  /** Reorders or removes tools: their current indices in the new order. */
  arrangeTools(order: readonly number[]): void;
  /** The error at a path, if it is to be shown; `within` includes errors below the path. */
  errorAt(path: string, options?: { within?: boolean }): string | undefined;
  /** All errors, shown or not. */
  problems: readonly FieldError[];
  /** The errors that are shown. */
  shown: readonly FieldError[];
  /** Shows all errors from now on. Returns the current ones. */
  attempt(): readonly FieldError[];
  refuse(errors: readonly FieldError[]): void;
  /** The errors that the service returned, without those whose field changed since. */
  refused: readonly FieldError[];
  /** After a save: shows no errors until the next change. */
  settle(): void;
  /** Starts again with another definition. */
  reset(value: Definition): void;
  /** Whether the draft has changes that are not in `saved`. */
  differs(saved: Definition): boolean;
}

const fresh = (value: Definition): State => ({ value, unread: {}, touched: new Set(), tried: false, refused: [] });

/** `edits`: those to continue with. */
export function useNewDraft(start: Definition, edits?: Edits): AgentDraft {
  const [state, setState] = useState(() => ({ ...fresh(start), ...edits }));
  const { value, unread, touched, tried, refused } = state;
  // Deferred, so that validation does not delay typing.
  const checked = useDeferredValue(value);
  const found = useMemo(() => problemsOf(checked), [checked]);
  const problems = together(found, state);
  const shown = problems.filter(
    ({ path }) => tried || [...touched].some((one) => isWithin(path, one)) || refused.some((one) => one.path === path),
  );

  function change(path: string, next: (state: State) => Partial<State>, visited: string | null = path): void {
    setState((before) => ({
      ...before,
      touched: visited === null ? before.touched : new Set([...before.touched, visited]),
      refused: before.refused.filter((one) => !isWithin(one.path, path) && !isWithin(path, one.path)),
      ...next(before),
    }));
  }

  return {
    value,
    edits: { value, unread },
    problems,
    shown,
    get: (path) => valueAt(value, path),
    set: (path, next, visited) =>
      change(
        path,
        (before) => ({
          value: withValueAt(before.value, path, next) as Definition,
          unread: without(before.unread, path),
        }),
        visited,
      ),
    unreadText: (path) => unread[path]?.text,
    setText: (path, text) =>
      change(path, (before) => {
        const others = without(before.unread, path);
        const read = readJson(text, path === '');
        if ('message' in read) return { unread: { ...others, [path]: { text, message: read.message } } };
        return { unread: others, value: withValueAt(before.value, path, read.value) as Definition };
      }),
    arrangeTools: (order) =>
      setState((before) => {
        const tools = before.value.tools as unknown[];
        const moved = <T,>(entries: [string, T][]) =>
          entries.flatMap(([path, one]): [string, T][] => {
            const to = movedPath(path, order);
            return to === undefined ? [] : [[to, one]];
          });
        return {
          ...before,
          value: { ...before.value, tools: order.map((index) => tools[index]) },
          unread: Object.fromEntries(moved(Object.entries(before.unread))),
          touched: new Set(moved([...before.touched].map((path) => [path, path])).map(([path]) => path)),
          refused: moved(before.refused.map((one) => [one.path, one])).map(([path, one]) => ({ ...one, path })),
        };
      }),
    errorAt: (path, { within = false } = {}) => {
      const here = shown.find((one) => one.path === path);
      if (here || !within) return here?.message;
      const inner = shown.find((one) => isWithin(one.path, path));
      return inner && `${inner.path.slice(path.length).replace(/^\./, '')} ${inner.message}`;
    },
    attempt: () => {
      setState((before) => ({ ...before, tried: true }));
      return together(problemsOf(value), { ...state, refused: [] });
    },
    refuse: (errors) => setState((before) => ({ ...before, refused: errors })),
    refused,
    settle: () => setState((before) => ({ ...fresh(before.value), unread: before.unread })),
    reset: (next) => setState(fresh(next)),
    differs: (saved) => Object.keys(unread).length > 0 || !sameJson(whole(value), whole(saved)),
  };
}

/** Invalid JSON first, then errors of the schema, then those of the service; the first of each path. */
function together(found: readonly FieldError[], { unread, refused }: State): FieldError[] {
  const all = [...Object.entries(unread).map(([path, { message }]) => ({ path, message })), ...found, ...refused];
  return [...new Map(all.toReversed().map((one) => [one.path, one])).values()].toReversed();
}

function without(unread: State['unread'], path: string): State['unread'] {
  return Object.fromEntries(Object.entries(unread).filter(([one]) => !isWithin(one, path)));
}

/** The path after the tools were reordered; undefined if its tool was removed. */
function movedPath(path: string, order: readonly number[]): string | undefined {
  const index = /^tools\[(\d+)\]/.exec(path)?.[1];
  if (index === undefined) return path;
  const to = order.indexOf(Number(index));
  return to < 0 ? undefined : path.replace(/^tools\[\d+\]/, `tools[${to}]`);
}

/** Parses a JSON text. Empty text is no value, unless an object is required. */
export function readJson(text: string, objectOnly = false): { value: unknown } | { message: string } {
  if (text.trim() === '' && !objectOnly) return { value: undefined };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { message: `is not valid JSON${placeOf(error, text)}` };
  }
  return objectOnly && !isRecord(value) ? { message: 'must be an object' } : { value };
}

/** The line of the error, if the browser reports it. */
function placeOf(error: unknown, text: string): string {
  const message = String(error);
  const [, position] = /at position (\d+)/.exec(message) ?? [];
  const line = position ? text.slice(0, Number(position)).split('\n').length : /line (\d+)/.exec(message)?.[1];
  if (line !== undefined) return `: check line ${line}`;
  return /end of|Unterminated/i.test(message) ? ': it is incomplete' : '';
}

const DraftContext = createContext<AgentDraft | undefined>(undefined);

export function DraftProvider({ draft, children }: { draft: AgentDraft; children: ReactNode }) {
  return <DraftContext value={draft}>{children}</DraftContext>;
}

export function useDraft(): AgentDraft {
  return useContext(DraftContext)!;
}
