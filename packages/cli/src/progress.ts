// How far a long command is: one line that is redrawn on a terminal, otherwise a line for each step.
import type { ProgressState } from '@signalbox/server';
import type { Terminal } from './terminal.ts';

// Often enough to see that it moves.
const REDRAW_MS = 100;

export interface ProgressLine {
  show(state: ProgressState): void;
  /** Removes the line from the terminal. Call it before anything else is printed. */
  clear(): void;
}

export function progressLine({ stderr, clock }: Pick<Terminal, 'stderr' | 'clock'>): ProgressLine {
  let shownAt = 0;
  let step = '';
  return {
    show(state) {
      if (!stderr.isTTY) {
        if (state.step !== step) void stderr.write(`${capitalized(state.step)} …\n`);
        step = state.step;
        return;
      }
      const now = clock.now();
      if (now - shownAt < REDRAW_MS && state.step === step) return;
      shownAt = now;
      step = state.step;
      void stderr.write(`\r\u001b[K${lineOf(state).slice(0, (stderr.columns ?? 80) - 1)}`);
    },
    clear() {
      if (stderr.isTTY && step !== '') void stderr.write('\r\u001b[K');
    },
  };
}

function lineOf({ step, table, rows, done, of }: ProgressState): string {
  const parts = of === undefined ? '' : ` (${(done ?? 0) + 1} of ${of})`;
  const what = table === undefined ? '' : ` ${table}`;
  return `${capitalized(step)}${what}${parts}${rows === undefined ? '' : `: ${rows.toLocaleString('en')} rows`}`;
}

const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
