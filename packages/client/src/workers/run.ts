/**
 * A program that runs turns of a queue: it claims them, as many at once as it may, and hands each to `onTurn`.
 *
 * A turn counts only while this program has something to do for it. One that waits, for an approval or for a tool that the
 * service runs, is remembered and claimed again first when it can go on; where too many wait, the oldest is forgotten: it goes
 * on in a new `onTurn` then, as after a crash.
 */

import { ConflictError, SignalboxError } from '../errors.ts';
import type { Workers } from '../resources/workers.ts';
import { backoffMs, isPassing } from '../retry.ts';
import type { Sleep } from '../time.ts';
import type { WorkerTurn } from '../types.generated.ts';
import type { ToolFunction } from './calls.ts';
import { TurnLostError } from './errors.ts';
import { type Host, type OpenTurn, openTurn, type Turn } from './turn.ts';

export interface RunOptions {
  /** The queue that the Agents' models name. */
  queue: string;
  /** Only turns of Sessions in this Environment. Default: of all. */
  environment?: string | undefined;
  /**
   * Runs a turn to its end. When it resolves, the turn is over; what it throws fails the Session.
   *
   * It may be called for a turn that began elsewhere: `turn.messages` holds all that has happened, go on from there.
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: what an async function gives that returns nothing.
  onTurn: (turn: Turn, context: { signal: AbortSignal }) => Promise<TurnResult | void> | TurnResult | void;
  /** What runs calls of the Agents' `client` tools, by the tool's name. */
  tools?: Readonly<Record<string, ToolFunction>> | undefined;
  /** How many turns at once. Default: 10. */
  concurrency?: number | undefined;
  /** Stops the program: it claims nothing more, and ends or gives back what it has. */
  signal?: AbortSignal | undefined;
  /** How long steps under way may go on after that, in milliseconds; then they are given back. Default: 20,000. */
  graceMs?: number | undefined;
  /** Told of what `onTurn` threw and of calls that failed for good. Default: `console.error`. */
  onError?: ((error: unknown) => void) | undefined;
}

/** How a turn ended, where there is more to say than that it did. */
export interface TurnResult {
  /**
   * `refusal`: the model would not answer. `maxOutputTokens`: its answer was cut by a token limit. Default: `endTurn`.
   */
  stopReason?: 'endTurn' | 'maxOutputTokens' | 'refusal' | undefined;
}

const defaultConcurrency = 10;
const defaultGraceMs = 20_000;
/** Turns that are remembered while they wait; each is an open request. */
const maxWaiting = 100;
/** Claims under way at once: one alone would give the program its turns one after another. */
const claims = 4;
const claimWaitSeconds = 20;
/** The service answers after that many seconds at the latest. */
const claimTimeoutMs = (claimWaitSeconds + 15) * 1000;
const longestPauseMs = 10_000;

/** Resolves when the signal has aborted and nothing is under way any more; rejects where the service refuses the claims. */
export async function run(
  workers: Pick<Workers, 'claim' | 'heartbeat' | 'append' | 'complete' | 'release'>,
  sleep: Sleep,
  options: RunOptions,
): Promise<void> {
  const { queue, environment, onTurn, tools = {}, concurrency = defaultConcurrency } = options;
  const { graceMs = defaultGraceMs, onError = console.error } = options;
  if (!(concurrency >= 1)) throw new TypeError('concurrency must be at least 1');
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  if (options.signal?.aborted) stop();
  options.signal?.addEventListener('abort', stop, { once: true });

  const working = new Set<OpenTurn>();
  const waiting = new Set<OpenTurn>();
  const underWay = new Set<Promise<void>>();
  let claiming = 0;
  let roomCame = Promise.withResolvers<void>();

  const host: Host = { workers, sleep, functions: tools, next, adopt: begin };

  function madeRoom(): void {
    roomCame.resolve();
    roomCame = Promise.withResolvers();
  }

  // ── Claims ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  async function claimAll(): Promise<void> {
    while (!stopping.signal.aborted) {
      if (working.size + claiming >= concurrency) {
        await Promise.race([roomCame.promise, aborted(stopping.signal)]);
        continue;
      }
      claiming += 1;
      const claim = await claimPatiently({ queue, environment }, stopping.signal).finally(() => {
        claiming -= 1;
      });
      if (claim) begin(claim);
    }
  }

  /** Waits for a turn for as long as it takes; undefined where the signal aborts first. */
  async function claimPatiently(
    what: { queue: string; environment?: string | undefined; sessionId?: string; turn?: number },
    signal: AbortSignal,
  ): Promise<WorkerTurn | undefined> {
    for (let failed = 0; !signal.aborted; ) {
      try {
        const params = { ...what, waitSeconds: claimWaitSeconds };
        const claim = await workers.claim(params, { signal, timeoutMs: claimTimeoutMs });
        if (claim) return claim;
        failed = 0;
      } catch (error) {
        if (signal.aborted) return undefined;
        if (!(error instanceof SignalboxError) || !isPassing(error)) throw error;
        await sleep(backoffMs(failed, Math.random(), longestPauseMs), signal).catch(() => {});
        failed += 1;
      }
    }
    return undefined;
  }

  async function next(
    { sessionId, turn }: WorkerTurn,
    open: OpenTurn,
    complete: () => Promise<void>,
  ): Promise<WorkerTurn> {
    const refused = new AbortController();
    const signal = AbortSignal.any([open.signal, stopping.signal, refused.signal]);
    // Asked for before it is there: nobody else is given what comes next while this program is on its way to ask.
    const claiming = claimPatiently({ queue, sessionId, turn }, signal);
    claiming.catch(() => {});
    try {
      await complete();
    } catch (error) {
      refused.abort();
      throw error;
    }
    working.delete(open);
    waiting.add(open);
    madeRoom();
    try {
      const [oldest] = waiting;
      if (waiting.size > maxWaiting) await oldest!.letGo(new TurnLostError('Too many turns wait'), false);
      const claim = await claiming;
      if (!claim) throw open.signal.aborted ? open.signal.reason : stopped();
      working.add(open);
      return claim;
    } catch (error) {
      if (error instanceof ConflictError && error.code === 'turn_lost') throw new TurnLostError(error.detail);
      throw error;
    } finally {
      waiting.delete(open);
    }
  }

  // ── Turns ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  function begin(claim: WorkerTurn): void {
    const open = openTurn(claim, host);
    const leave = () => {
      working.delete(open);
      madeRoom();
    };
    working.add(open);
    // What is lost takes no room, also where `onTurn` does not hear of it.
    open.signal.addEventListener('abort', leave, { once: true });
    const done = work(open, claim)
      .catch(async (error) => {
        if (error instanceof TurnLostError) return;
        onError(error);
        // The service takes no end of it. Whoever has it when its lease is over may have more luck.
        await open.letGo(new TurnLostError('The end of the turn was refused', { cause: error }), false);
      })
      .finally(() => {
        underWay.delete(done);
        leave();
      });
    underWay.add(done);
  }

  async function work(open: OpenTurn, claim: WorkerTurn): Promise<void> {
    if (claim.pendingCalls.length > 0) return await open.runPending();
    try {
      const result = await onTurn(open.turn, { signal: open.signal });
      await open.finish(result?.stopReason);
    } catch (error) {
      if (open.signal.aborted) return;
      onError(error);
      await open.fail(error);
    }
  }

  // ── The end ────────────────────────────────────────────────────────────────────────────────────────────────────────

  async function end(): Promise<void> {
    for (const open of waiting) await open.letGo(stopped(), false);
    const ended = new AbortController();
    const late = sleep(graceMs, ended.signal).then(
      () => true,
      () => false,
    );
    if (await Promise.race([late, Promise.all(underWay).then(() => false)])) {
      const left = [...working].map((open) => open.letGo(stopped(), true).catch(onError));
      await Promise.all(left);
    }
    ended.abort();
  }

  try {
    await Promise.all(Array.from({ length: claims }, claimAll));
  } finally {
    stop();
    options.signal?.removeEventListener('abort', stop);
    await end();
  }
}

function stopped(): TurnLostError {
  return new TurnLostError('The program stops');
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
