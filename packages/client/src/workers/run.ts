/**
 * Runs turns of a queue: claims them, up to `concurrency` at once, and passes each to `onTurn`.
 *
 * A turn counts only while this program has work to do for it. A turn that waits, for an approval or for a tool that the
 * service runs, is remembered, and claimed again when it can continue. If too many wait, the oldest is dropped: it then
 * continues in a new `onTurn`, as after a crash.
 */

import { deferred } from '../deferred.ts';
import { ConflictError, SignalboxError } from '../errors.ts';
import { backoffMs, isTemporary } from '../retry.ts';
import type { Sleep } from '../time.ts';
import type { WorkerTurn } from '../types.generated.ts';
import type { WorkerApi } from './api.ts';
import type { ToolFunction } from './calls.ts';
import { TurnLostError } from './errors.ts';
import { type Host, type OpenTurn, openTurn, type Turn } from './turn.ts';

export interface RunOptions {
  /** The queue in the model of the agents. */
  queue: string;
  /** Only turns of sessions in this environment. Default: all. */
  environment?: string | undefined;
  /**
   * Runs a turn to its end. When it resolves, the turn ends; if it throws, the turn fails.
   *
   * It can be called for a turn that started in another process: `turn.messages` has everything so far; continue from there.
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: an async function that returns nothing.
  onTurn: (turn: Turn, context: { signal: AbortSignal }) => Promise<TurnResult | void> | TurnResult | void;
  /** Functions that run calls of the agents' `client` tools, by name of the tool. */
  tools?: Readonly<Record<string, ToolFunction>> | undefined;
  /** How many turns at once. Default: 10. */
  concurrency?: number | undefined;
  /** Stops the program: it claims no more turns, and finishes or releases those it has. */
  signal?: AbortSignal | undefined;
  /** How long current steps can continue after that, in milliseconds; then they are released. Default: 20,000. */
  graceMs?: number | undefined;
  /** Called with errors of `onTurn` and of API calls that failed permanently. Default: `console.error`. */
  onError?: ((error: unknown) => void) | undefined;
}

/** How a turn ended. */
export interface TurnResult {
  /**
   * `refusal`: the model refused. `maxOutputTokens`: a token limit cut the response. Default: `endTurn`.
   */
  stopReason?: 'endTurn' | 'maxOutputTokens' | 'refusal' | undefined;
}

const defaultConcurrency = 10;
const defaultGraceMs = 20_000;
/** Turns that are remembered while they wait; each has an open request. */
const maxWaiting = 100;
/** Claims at once: a single one would get turns one after another. */
const parallelClaims = 4;
const claimWaitSeconds = 20;
/** The service responds within that many seconds. */
const claimTimeoutMs = (claimWaitSeconds + 15) * 1000;
const longestPauseMs = 10_000;

/** Resolves when the signal has aborted and no turn is left; rejects if the service refuses the claims. */
export async function run(workers: WorkerApi, sleep: Sleep, options: RunOptions): Promise<void> {
  const { queue, environment, onTurn, tools = {}, concurrency = defaultConcurrency } = options;
  const { graceMs = defaultGraceMs, onError = console.error } = options;
  if (!(concurrency >= 1)) throw new TypeError('concurrency must be at least 1');
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  if (options.signal?.aborted) stop();
  options.signal?.addEventListener('abort', stop, { once: true });

  const working = new Set<OpenTurn>();
  const waiting = new Set<OpenTurn>();
  /** Takes the next step of a turn that is open here, by session and turn. */
  const expected = new Map<string, (claim: WorkerTurn) => void>();
  const running = new Set<Promise<void>>();
  let claiming = 0;
  let placeFreed = deferred();

  const host: Host = { workers, sleep, functions: tools, next, adopt: start };

  function freePlace(): void {
    placeFreed.resolve();
    placeFreed = deferred();
  }

  // ── Claims ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  async function claimAll(): Promise<void> {
    while (!stopping.signal.aborted) {
      if (working.size + claiming >= concurrency) {
        await Promise.race([placeFreed.promise, aborted(stopping.signal)]);
        continue;
      }
      claiming += 1;
      const claim = await claimWithRetries({ queue, environment }, stopping.signal).finally(() => {
        claiming -= 1;
      });
      if (!claim) continue;
      // A claim of any turn can be faster than the one that waits for the next step of this turn.
      const take = expected.get(keyOf(claim));
      if (take) take(claim);
      else start(claim);
    }
  }

  /** Waits for a turn without a limit; undefined if the signal aborts first. */
  async function claimWithRetries(
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
        if (!(error instanceof SignalboxError) || !isTemporary(error)) throw error;
        await sleep(backoffMs(failed, Math.random(), longestPauseMs), signal).catch(() => {});
        failed += 1;
      }
    }
    return undefined;
  }

  async function next(claimed: WorkerTurn, open: OpenTurn, complete: () => Promise<void>): Promise<WorkerTurn> {
    const { sessionId, turn } = claimed;
    const over = new AbortController();
    const signal = AbortSignal.any([open.signal, stopping.signal, over.signal]);
    const key = keyOf(claimed);
    const byOther = deferred<WorkerTurn>();
    expected.set(key, byOther.resolve);
    // Claimed before it is offered, so that no other worker gets the next step in the meantime.
    const claiming = Promise.race([claimWithRetries({ queue, sessionId, turn }, signal), byOther.promise]);
    claiming.catch(() => {});
    try {
      await complete();
      working.delete(open);
      waiting.add(open);
      freePlace();
      const [oldest] = waiting;
      if (waiting.size > maxWaiting) await oldest!.abandon(new TurnLostError('Too many turns wait'), false);
      const claim = await claiming;
      if (!claim) throw open.signal.aborted ? open.signal.reason : stopped();
      working.add(open);
      return claim;
    } catch (error) {
      if (error instanceof ConflictError && error.code === 'turn_lost') throw new TurnLostError(error.detail);
      throw error;
    } finally {
      over.abort();
      waiting.delete(open);
      if (expected.get(key) === byOther.resolve) expected.delete(key);
    }
  }

  // ── Turns ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  function start(claim: WorkerTurn): void {
    const open = openTurn(claim, host);
    const leave = () => {
      working.delete(open);
      freePlace();
    };
    working.add(open);
    // A lost turn frees its place even if `onTurn` ignores the signal.
    open.signal.addEventListener('abort', leave, { once: true });
    const done = work(open, claim)
      .catch(async (error) => {
        if (error instanceof TurnLostError) return;
        onError(error);
        // The service refuses this end of the turn. After the lease expires, another worker gets it.
        await open.abandon(new TurnLostError('The end of the turn was refused', { cause: error }), false);
      })
      .finally(() => {
        running.delete(done);
        leave();
      });
    running.add(done);
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

  async function shutDown(): Promise<void> {
    for (const open of waiting) await open.abandon(stopped(), false);
    const ended = new AbortController();
    const late = sleep(graceMs, ended.signal).then(
      () => true,
      () => false,
    );
    if (await Promise.race([late, Promise.all(running).then(() => false)])) {
      const left = [...working].map((open) => open.abandon(stopped(), true).catch(onError));
      await Promise.all(left);
    }
    ended.abort();
  }

  try {
    await Promise.all(Array.from({ length: parallelClaims }, claimAll));
  } finally {
    stop();
    options.signal?.removeEventListener('abort', stop);
    await shutDown();
  }
}

function keyOf({ sessionId, turn }: WorkerTurn): string {
  return `${sessionId} ${turn}`;
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
