// Sessions on three nodes that are killed and stopped, on a database whose connections break before and after the commit, with
// models, tools and receivers that fail (P1–P5, P7, P8). `npm run prove -- simulation` runs it for longer.
//
// Then the same without one of the mechanisms: the checkers must detect it.
import { expect, test } from 'vitest';
import { ApiError } from '../../src/lib/api-error.ts';
import { newSeed, simulate } from '../support/simulation.ts';

const seed = Number(process.env.SEED ?? newSeed());
const SESSIONS = Number(process.env.SIGNALBOX_SIMULATED_SESSIONS ?? 20);
const DISTURBANCES = Number(process.env.SIGNALBOX_SIMULATED_DISTURBANCES ?? 6);
// A fault has to hit the right moment; most runs detect it.
const MAX_MUTANT_RUNS = 8;
// A mutant may leave a session without an end, and the simulated limit takes minutes on a busy machine.
const TIMEOUT_MS = 600_000;

/** A call that was refused: the cursor of text that was lost is ahead of its session. */
function refusal(error: unknown): string[] {
  if (error instanceof ApiError) return [error.message];
  throw error;
}

test(`what clients, tools and receivers see keeps every guarantee, whatever fails (SEED=${seed})`, {
  timeout: TIMEOUT_MS,
}, async () => {
  expect(await simulate({ seed, sessions: SESSIONS, disturbances: DISTURBANCES })).toEqual([]);
});

test(`so it does while text goes through the tail (SEED=${seed})`, { timeout: TIMEOUT_MS }, async () => {
  expect(await simulate({ seed, sessions: SESSIONS, disturbances: DISTURBANCES, tail: true })).toEqual([]);
});

test.each<[string, RegExp, string, tail?: boolean]>([
  [
    'the check of the epoch in transitions',
    /and s\.epoch = (\$\d+) and s\.turn/,
    'and (s.epoch = $1 or true) and s.turn',
  ],
  ['the check of the expected seq in transitions', / and s\.next_seq = (\$\d+)/, ' and (s.next_seq = $1 or true)'],
  [
    'the text in the tail that a claim moves',
    /(with h as \(.*) order by e\.session_id, e\.flush, e\.seq_to/,
    '$1 and false',
    true,
  ],
])(
  `without %s a guarantee is broken, and detected (SEED=${seed})`,
  { timeout: TIMEOUT_MS },
  async (_, mechanism, without, tail = false) => {
    let changed = 0;
    const mutate = (text: string) => {
      const flat = text.replaceAll(/\s+/g, ' ');
      if (!mechanism.test(flat)) return text;
      changed += 1;
      return flat.replace(mechanism, without);
    };
    const broken: string[] = [];
    for (let run = 0; run < MAX_MUTANT_RUNS && broken.length === 0; run += 1) {
      broken.push(
        ...(await simulate({ seed: seed + run, sessions: 20, disturbances: 6, mutate, tail }).catch(refusal)),
      );
    }
    expect(changed).toBeGreaterThan(0);
    expect(broken).not.toEqual([]);
  },
);
