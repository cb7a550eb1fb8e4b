// One state behind the form and the JSON: the value, and beside it the texts of JSON fields that cannot be read (yet). The
// text of
// the whole is the JSON field at the path ''. What is wrong is shown at a field once somebody was there, and everywhere once
// they tried to save.
import type { FieldError } from '@signalbox/contract';
import { createContext, type ReactNode, useContext, useDeferredValue, useMemo, useState } from 'react';
import { type Definition, problemsOf, sameJson, whole } from './definition.ts';
import { isRecord } from './model.ts';
import { isWithin, valueAt, withValueAt } from './path.ts';

interface State {
  value: Definition;
  /** Texts that are no JSON, by the path of their field, with why. */
  unread: Readonly<Record<string, { text: string; message: string }>>;
  /** The paths that somebody has changed. */
  touched: ReadonlySet<string>;
  tried: boolean;
  /** What the service did not take, until it is changed. */
  refused: readonly FieldError[];
}

export interface Draft {
  value: Definition;
  get(path: string): unknown;
  /** Puts a value; undefined takes the field out. `visited`: where what is wrong is shown from now on; null: nowhere else. */
  set(path: string, value: unknown, visited?: string | null): void;
  /** The text of a JSON field where it cannot be read. */
  unreadText(path: string): string | undefined;
  /** Takes the text of a JSON field: as its value, or as unread. Nothing written: no value. */
  setText(path: string, text: string): void;
  /** Puts tools into another order, or leaves some out: the present indices in the order to come. */
  arrangeTools(order: readonly number[]): void;
  /** What is wrong at a path, if it is time to say so; `within` also names what is wrong below it. */
  errorAt(path: string, options?: { within?: boolean }): string | undefined;
  /** Everything that is wrong, said or not. */
  problems: readonly FieldError[];
  /** Everything that is said to be wrong. */
  shown: readonly FieldError[];
  /** From now on everything wrong is shown. Answers with what is wrong at this moment. */
  attempt(): readonly FieldError[];
  refuse(errors: readonly FieldError[]): void;
  /** What the service did not take, as far as it was not changed since. */
  refused: readonly FieldError[];
  /** All is saved: nothing is shown as wrong until somebody is at it again. */
  settle(): void;
  /** Begins anew with another definition. */
  reset(value: Definition): void;
  /** Whether something would be lost that is not in `saved`. */
  differs(saved: Definition): boolean;
}

const fresh = (value: Definition): State => ({ value, unread: {}, touched: new Set(), tried: false, refused: [] });

export function useNewDraft(start: Definition): Draft {
  const [state, setState] = useState(() => fresh(start));
  const { value, unread, touched, tried, refused } = state;
  // Typing goes before checking.
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

/** What cannot be read, then what the schema does not take, then what the service did not take; the first of each path. */
function together(found: readonly FieldError[], { unread, refused }: State): FieldError[] {
  const all = [...Object.entries(unread).map(([path, { message }]) => ({ path, message })), ...found, ...refused];
  return [...new Map(all.toReversed().map((one) => [one.path, one])).values()].toReversed();
}

function without(unread: State['unread'], path: string): State['unread'] {
  return Object.fromEntries(Object.entries(unread).filter(([one]) => !isWithin(one, path)));
}

/** Where a path leads after the tools were arranged; undefined where its tool is gone. */
function movedPath(path: string, order: readonly number[]): string | undefined {
  const index = /^tools\[(\d+)\]/.exec(path)?.[1];
  if (index === undefined) return path;
  const to = order.indexOf(Number(index));
  return to < 0 ? undefined : path.replace(/^tools\[\d+\]/, `tools[${to}]`);
}

/** A JSON text as a value. Nothing written is no value, unless there must be an object. */
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

/** The line, where the browser says it. */
function placeOf(error: unknown, text: string): string {
  const message = String(error);
  const [, position] = /at position (\d+)/.exec(message) ?? [];
  const line = position ? text.slice(0, Number(position)).split('\n').length : /line (\d+)/.exec(message)?.[1];
  if (line !== undefined) return `: check line ${line}`;
  return /end of|Unterminated/i.test(message) ? ': it is incomplete' : '';
}

const DraftContext = createContext<Draft | undefined>(undefined);

export function DraftProvider({ draft, children }: { draft: Draft; children: ReactNode }) {
  return <DraftContext value={draft}>{children}</DraftContext>;
}

export function useDraft(): Draft {
  return useContext(DraftContext)!;
}
