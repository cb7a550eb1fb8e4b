// What a run took and cost. The times are those of the service.
import type { SessionTurn } from '@signalbox/client';
import { duration } from '../../ui/time.tsx';
import { number } from '../sessions/session-text.ts';

export interface Measures {
  readonly firstTokenMs: number | null;
  readonly totalMs: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** null: no price is known. */
  readonly costUsd: number | null;
  readonly toolCalls: number;
}

/** The measures of these turns, in any order; undefined if there are none. */
export function measuresOf(turns: readonly SessionTurn[]): Measures | undefined {
  const ordered = turns.toSorted((a, b) => a.turn - b.turn);
  const first = ordered[0];
  if (!first) return undefined;
  const sum = (of: (turn: SessionTurn) => number) => ordered.reduce((so, turn) => so + of(turn), 0);
  const costs = ordered.map(({ usage }) => usage.costUsd).filter((cost) => cost !== null);
  const firstToken = first.operations.find(({ firstTokenAt }) => firstTokenAt !== null)?.firstTokenAt;
  return {
    firstTokenMs: firstToken ? Date.parse(firstToken) - Date.parse(first.startedAt) : null,
    totalMs: sum(({ startedAt, endedAt }) => (endedAt === null ? 0 : Date.parse(endedAt) - Date.parse(startedAt))),
    inputTokens: sum(({ usage }) => usage.inputTokens),
    outputTokens: sum(({ usage }) => usage.outputTokens),
    costUsd: costs.length > 0 ? costs.reduce((so, cost) => so + cost, 0) : null,
    toolCalls: sum(({ operations }) => operations.filter(({ kind }) => kind === 'tool').length),
  };
}

export interface Shown {
  readonly name: string;
  readonly text: string;
  /** In place of the text. */
  readonly costUsd?: number | null | undefined;
  /** Compared with the baseline: `+22%`; undefined if there is nothing to compare, or no difference. */
  readonly change: string | undefined;
}

/** For people. `baseline`: what each figure is compared with. */
export function shownMeasures(one: Measures | undefined, baseline?: Measures): Shown[] {
  const figure = (name: string, of: (measures: Measures) => number | null, text: (value: number) => string): Shown => {
    const value = one && of(one);
    return {
      name,
      text: value == null ? '–' : text(value),
      change: value == null || !baseline ? undefined : changeText(of(baseline), value),
    };
  };
  return [
    figure('First token', ({ firstTokenMs }) => firstTokenMs, duration),
    figure('Total', ({ totalMs }) => totalMs, duration),
    figure('Tokens in', ({ inputTokens }) => inputTokens, number),
    figure('Tokens out', ({ outputTokens }) => outputTokens, number),
    figure('Tool calls', ({ toolCalls }) => toolCalls, number),
    { ...figure('Cost', ({ costUsd }) => costUsd, String), costUsd: one?.costUsd },
  ];
}

function changeText(before: number | null, now: number): string | undefined {
  if (before === null || before === now) return undefined;
  if (before === 0) return '+';
  const percent = Math.round((now / before - 1) * 100);
  if (percent === 0) return undefined;
  return `${percent > 0 ? '+' : '−'}${number(Math.abs(percent))}%`;
}
