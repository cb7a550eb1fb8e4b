/**
 * A turn as `onTurn` sees it, over the steps that it takes.
 *
 * Between two steps the service has the turn: `callTool` completes the step with the calls that were made together, and the
 * turn is claimed again when their results are there, or when calls of the Agent's own `client` tools are to be run. Only
 * while a step is claimed it has a lease, kept by heartbeats; text that is appended in between waits.
 */

import { ConflictError, SignalboxError } from '../errors.ts';
import type { Workers } from '../resources/workers.ts';
import { isPassing } from '../retry.ts';
import type { Sleep } from '../time.ts';
import type {
  CallOutcome,
  CompleteWorkerTurn,
  PendingCall,
  ToolResult,
  WorkerTurn,
  WorkerUsage,
} from '../types.generated.ts';
import { type Call, messageOf, runCall, settle, type ToolFunction, untilAborted } from './calls.ts';
import { TurnLostError } from './errors.ts';
import { createTextSender } from './text.ts';

export interface CallToolOptions {
  /**
   * For a `client` tool: what runs it, once it may run. Default: the function of this name in `tools` of `run`, which also a
   * program that goes on in the place of this one has.
   */
  run?: ToolFunction | undefined;
}

/** What a turn shows of the step that it is at. */
const shown = [
  'sessionId',
  'agentId',
  'agentVersion',
  'environment',
  'turn',
  'step',
  'instructions',
  'messages',
  'tools',
  'outputSchema',
  'limits',
  'metadata',
  'deadlineAt',
] as const satisfies readonly (keyof WorkerTurn)[];

/** A turn of a Session, from where it is to its end. */
export interface Turn extends Readonly<Pick<WorkerTurn, (typeof shown)[number]>> {
  /**
   * Shows text of the answer, as it comes. Resolves when there is room for more; need not be awaited.
   *
   * @throws TurnLostError
   */
  append(text: string): Promise<void>;
  /**
   * Calls a tool through the service: where its policy says so a person decides first. Calls made together, before the
   * program waits for anything, are one step and run together. `messages`, `step` and `tools` are those of the next step
   * when it resolves.
   *
   * @throws ToolDeniedError a person said no
   * @throws ToolFailedError it ran, or could not, and failed
   * @throws TurnLostError
   */
  callTool<T = unknown>(tool: string, input: unknown, options?: CallToolOptions): Promise<T>;
  /**
   * Adds to what this step used: it counts toward the budget and stands on the Session. Tokens are whole numbers, `costUsd` is
   * in US dollars.
   *
   * @throws TypeError a number is none, or negative
   */
  usage(used: WorkerUsage): void;
}

/** What a turn needs of the program that runs it. */
export interface Host {
  readonly workers: Pick<Workers, 'heartbeat' | 'append' | 'complete' | 'release'>;
  readonly sleep: Sleep;
  readonly functions: Readonly<Record<string, ToolFunction>>;
  /**
   * Completes the step and claims what comes next of the turn. Rejects with TurnLostError where nothing does, or not here, and
   * as `complete` does.
   */
  next(claim: WorkerTurn, turn: OpenTurn, complete: () => Promise<void>): Promise<WorkerTurn>;
  /** A claim of the same turn that does not follow from where this program is: somebody else went on meanwhile. */
  adopt(claim: WorkerTurn): void;
}

/** The program's side of a turn. */
export interface OpenTurn {
  readonly turn: Turn;
  readonly signal: AbortSignal;
  /** Runs calls whose program is gone, and ends there: the step after them is offered to all. */
  runPending(): Promise<void>;
  /** Ends the turn, once what was called has ended. */
  finish(stopReason: CompleteWorkerTurn['stopReason']): Promise<void>;
  fail(error: unknown): Promise<void>;
  /** Aborts it here; with `giveBack` a claimed step is offered to others at once. */
  letGo(reason: TurnLostError, giveBack: boolean): Promise<void>;
}

const heartbeatMs = 5_000;
/** A beat that takes longer is given up: the next one may come through. */
const heartbeatTimeoutMs = 10_000;
const maxFailureCharacters = 2_000;
/** Up to half a minute: as long as the lease may last while the service is away. */
const patient = { maxRetries: 7 };

export function openTurn(claimed: WorkerTurn, host: Host): OpenTurn {
  const { workers, sleep } = host;
  const lost = new AbortController();
  let claim = claimed;
  let used: WorkerUsage | undefined;
  let asked: Call[] = [];
  let stepping: Promise<void> | undefined;
  let isOver = false;
  /** Set while a step is claimed; ends its heartbeat. */
  let held: AbortController | undefined;

  const text = createTextSender(async (deltas) => {
    const { cursor: after, workerTurnId } = claim;
    const cursor = await orLost(() => workers.append(workerTurnId, { deltas, after }, patient));
    claim = { ...claim, cursor };
  }, sleep);

  // ── The claim ──────────────────────────────────────────────────────────────────────────────────────────────────────

  function hold(next: WorkerTurn): void {
    claim = next;
    held = new AbortController();
    // Text belongs to an answer.
    if (next.pendingCalls.length === 0) text.open();
    void beat(next.workerTurnId, held.signal);
  }

  async function beat(workerTurnId: string, over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      await sleep(heartbeatMs, over).catch(() => {});
      if (over.aborted) return;
      const options = { maxRetries: 0, timeoutMs: heartbeatTimeoutMs, signal: over };
      // A beat that fails otherwise is followed by the next; the service knows when the lease is over.
      await workers.heartbeat(workerTurnId, options).catch((error) => {
        if (isTurnLost(error)) lose(new TurnLostError(error.detail));
      });
    }
  }

  /** Makes the turn lost where the service says that it is, or was away for about as long as a lease lasts. */
  async function orLost<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof SignalboxError) || !(isTurnLost(error) || isPassing(error))) throw error;
      lose(new TurnLostError(error.detail, { cause: error }));
      throw lost.signal.reason;
    }
  }

  function lose(reason: TurnLostError): void {
    held?.abort();
    held = undefined;
    text.close();
    lost.abort(reason);
    for (const call of asked.splice(0)) call.reject(reason);
  }

  async function complete(answer: CompleteWorkerTurn): Promise<void> {
    lost.signal.throwIfAborted();
    text.close();
    // No beat may find the step completed before the answer to this has come.
    held?.abort();
    held = undefined;
    try {
      await orLost(() => workers.complete(claim.workerTurnId, answer, patient));
    } catch (error) {
      if (!lost.signal.aborted) hold(claim);
      throw error;
    }
  }

  /** Completes a step, with what it used; what can't be sent has not been counted. */
  async function answer(given: CompleteWorkerTurn): Promise<void> {
    const usage = used;
    used = undefined;
    try {
      await complete(usage ? { ...given, usage } : given);
    } catch (error) {
      used = usage && sumOf(used, usage);
      throw error;
    }
  }

  // ── Steps ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  function stepSoon(): void {
    stepping ??= takeSteps().finally(() => {
      stepping = undefined;
      if (asked.length > 0) stepSoon();
    });
  }

  async function takeSteps(): Promise<void> {
    while (true) {
      // Calls that are made together come within one turn of the event loop.
      await sleep(0);
      const calls = asked;
      asked = [];
      if (calls.length === 0) return;
      try {
        const outcomes = await exchange(calls);
        for (const [index, call] of calls.entries()) settle(call, outcomes[index]);
      } catch (error) {
        if (error instanceof TurnLostError) lose(error);
        for (const call of calls) call.reject(error);
      }
    }
  }

  /** Completes the step with its calls, and comes back with the next one. */
  async function exchange(calls: readonly Call[]): Promise<CallOutcome[]> {
    lost.signal.throwIfAborted();
    await text.flush();
    const { step } = claim;
    let completeIt = () => answer({ toolCalls: calls.map(({ tool, input }) => ({ tool, input })) });
    while (true) {
      const next = await host.next(claim, open, completeIt);
      if (next.pendingCalls.length === 0 && next.step === step + 1) {
        hold(next);
        return next.outcomes;
      }
      if (next.pendingCalls.length === 0 || next.step !== step) {
        host.adopt(next);
        lose(new TurnLostError('Another worker has gone on with the turn'));
        throw lost.signal.reason;
      }
      hold(next);
      const results = await runCalls(next.pendingCalls, ({ index }) => calls[index]?.run);
      completeIt = () => completeCalls(results);
    }
  }

  async function runCalls(
    calls: readonly PendingCall[],
    given: (call: PendingCall) => ToolFunction | undefined,
  ): Promise<ToolResult[]> {
    const { functions } = host;
    const functionOf = (call: PendingCall) =>
      given(call) ?? (Object.hasOwn(functions, call.tool) ? functions[call.tool] : undefined);
    const results = calls.map((call) => runCall(call, functionOf(call), lost.signal));
    return await untilAborted(Promise.all(results), lost.signal);
  }

  async function completeCalls(toolResults: ToolResult[]): Promise<void> {
    try {
      await complete({ toolResults });
    } catch (error) {
      if (!(error instanceof SignalboxError && [400, 413].includes(error.status))) throw error;
      // They have run, so each must have a result.
      const told = messageOf(`The call has ended, but its result can't be sent: ${error.detail}`, maxFailureCharacters);
      await complete({ toolResults: toolResults.map(({ toolCallId }) => ({ toolCallId, error: told })) });
    }
  }

  /** Why nothing more may be asked of the turn. */
  function refusal(): Promise<never> | undefined {
    if (lost.signal.aborted) return Promise.reject(lost.signal.reason);
    return isOver ? Promise.reject(new TurnLostError('The turn is over')) : undefined;
  }

  const turn = {
    append(piece) {
      return unheard(refusal() ?? text.add(piece));
    },
    callTool<T>(tool: string, input: unknown, { run }: CallToolOptions = {}) {
      const refused = refusal();
      if (refused) return unheard(refused);
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      asked.push({ tool, input: input ?? {}, run, resolve, reject });
      stepSoon();
      return unheard(promise) as Promise<T>;
    },
    usage(more) {
      checkUsage(more);
      used = sumOf(used, more);
    },
  } as Turn;
  for (const field of shown) Object.defineProperty(turn, field, { enumerable: true, get: () => claim[field] });

  const open: OpenTurn = {
    turn,
    signal: lost.signal,

    async runPending() {
      await completeCalls(await runCalls(claim.pendingCalls, () => undefined));
    },

    async finish(stopReason) {
      while (stepping) await stepping;
      if (lost.signal.aborted) return;
      isOver = true;
      await text.flush();
      await answer(stopReason ? { stopReason } : {});
    },

    async fail(error) {
      while (stepping) await stepping;
      if (lost.signal.aborted) return;
      isOver = true;
      // Text that can't be sent may be what it failed with.
      await text.flush().catch(() => {});
      await answer({ error: { message: messageOf(error, maxFailureCharacters) } });
    },

    async letGo(reason, giveBack) {
      const { workerTurnId, pendingCalls } = claim;
      // Calls that have begun are not: nobody but who began them knows whether they had their effect.
      const release = giveBack && held !== undefined && pendingCalls.length === 0;
      lose(reason);
      if (release) await workers.release(workerTurnId, { maxRetries: 1 });
    },
  };

  hold(claimed);
  return open;
}

function isTurnLost(error: unknown): error is ConflictError {
  return error instanceof ConflictError && error.code === 'turn_lost';
}

/** Somebody may never look at it; whoever awaits it hears all the same. */
function unheard<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** Here rather than with the step's end: who reads it finds the line that counts wrongly. */
function checkUsage({ inputTokens, outputTokens, cachedTokens = 0, costUsd = 0 }: WorkerUsage): void {
  for (const [name, tokens] of Object.entries({ inputTokens, outputTokens, cachedTokens })) {
    if (!(Number.isSafeInteger(tokens) && tokens >= 0))
      throw new TypeError(`usage: ${name} must be a whole number, 0 or more`);
  }
  if (!(Number.isFinite(costUsd) && costUsd >= 0)) throw new TypeError('usage: costUsd must be a number, 0 or more');
}

function sumOf(one: WorkerUsage | undefined, other: WorkerUsage): WorkerUsage {
  if (!one) return other;
  const costUsd =
    one.costUsd === undefined && other.costUsd === undefined
      ? {}
      : { costUsd: (one.costUsd ?? 0) + (other.costUsd ?? 0) };
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    cachedTokens: (one.cachedTokens ?? 0) + (other.cachedTokens ?? 0),
    ...costUsd,
  };
}
