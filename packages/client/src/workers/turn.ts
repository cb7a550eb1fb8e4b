/**
 * A turn as `onTurn` sees it, over all of its steps.
 *
 * Between two steps the service has the turn: `callTool` completes the step with the calls that were made together. The turn is
 * claimed again when their results are there, or when calls of the agent's own `client` tools are to run. There is a lease,
 * kept by heartbeats, only while a step is claimed; text that is appended in between waits.
 */

import { deferred } from '../deferred.ts';
import { SignalboxError } from '../errors.ts';
import { isTemporary } from '../retry.ts';
import type { Sleep } from '../time.ts';
import type {
  CallOutcome,
  CompleteWorkerTurn,
  PendingCall,
  RanToolCall,
  ToolResult,
  ToolResultPart,
  WorkerSource,
  WorkerTurn,
  WorkerUsage,
} from '../types.generated.ts';
import type { WorkerApi } from './api.ts';
import { type Call, markHandled, messageOf, outputOf, runCall, type ToolFunction, untilAborted } from './calls.ts';
import { isTurnLost, ToolFailedError, TurnFailedError, TurnLostError } from './errors.ts';
import { createReport } from './report.ts';
import { createTextSender } from './text.ts';

export interface CallToolOptions {
  /**
   * For a `client` tool: the function that runs the call once it may run. Default: the function of this name in `tools` of `run`,
   * which another process has too if it takes over the turn.
   */
  run?: ToolFunction | undefined;
}

/** The fields of the current step that a turn shows. */
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
  'endUser',
  'deadlineAt',
] as const satisfies readonly (keyof WorkerTurn)[];

/** A turn of a session. */
export interface Turn extends Readonly<Pick<WorkerTurn, (typeof shown)[number]>> {
  /**
   * Appends text to the response. Resolves when there is room for more; you need not await it.
   *
   * @throws TurnLostError
   */
  append(text: string): Promise<void>;
  /** Appends reasoning of the model, as `append` does text. Does nothing unless the agent has `showReasoning`. */
  appendReasoning(text: string): Promise<void>;
  /**
   * Appends to the input of a call while the model writes it, as JSON. `index`: the place of the call among the calls that are made
   * together, from 0. Does nothing unless the agent has `showToolInput`.
   */
  appendToolInput(index: number, tool: string, delta: string): Promise<void>;
  /**
   * Calls a tool through the service, after an approval if its policy needs one. Calls made together, before the program awaits
   * anything else, are one step and run in parallel. When it resolves, `messages`, `step` and `tools` belong to the next
   * step.
   *
   * @throws ToolDeniedError the call was denied
   * @throws ToolFailedError the call failed, or could not run
   * @throws TurnLostError
   */
  callTool<T = unknown>(tool: string, input: unknown, options?: CallToolOptions): Promise<T>;
  /**
   * Calls a tool for a model. Like `callTool`, but resolves with the result as it is in `messages`, also if the call was denied
   * or failed.
   *
   * @throws TurnLostError
   */
  toolResult(tool: string, input: unknown, options?: CallToolOptions): Promise<ToolResultPart>;
  /**
   * The content of a file that a message names, at most 32 MiB.
   *
   * @throws NotFoundError the file was deleted
   * @throws TurnLostError
   */
  fileContent(fileId: string): Promise<Uint8Array<ArrayBuffer>>;
  /**
   * Adds to the usage of this step, which counts toward the budget and is shown on the session. Tokens are whole numbers,
   * `costUsd` is in US dollars.
   *
   * @throws TypeError if a number is negative or not a number
   */
  usage(used: WorkerUsage): void;
  /**
   * Adds a call that the provider of your model ran itself for this step, such as a web search, with its `output` or `error`. It is
   * shown with the response, and not run.
   */
  providerCall(call: RanToolCall): void;
  /** Adds a source that the text of this step cites: a `url` (`http` or `https`), a `title`, or both. */
  source(source: WorkerSource): void;
}

/** What a turn needs from the program that runs it. */
export interface Host {
  readonly workers: Omit<WorkerApi, 'claim'>;
  readonly sleep: Sleep;
  readonly functions: Readonly<Record<string, ToolFunction>>;
  /**
   * Completes the step and claims the next one of the turn. Rejects with TurnLostError if there is none for this program, and
   * as `complete` does.
   */
  next(claim: WorkerTurn, turn: OpenTurn, complete: () => Promise<void>): Promise<WorkerTurn>;
  /** A claim of the same turn that does not follow this program's last step: another worker continued it in the meantime. */
  adopt(claim: WorkerTurn): void;
}

/** The program's side of a turn. */
export interface OpenTurn {
  readonly turn: Turn;
  readonly signal: AbortSignal;
  /** Runs calls of a program that is gone, and ends there: any worker can claim the next step. */
  runPending(): Promise<void>;
  /** Ends the turn, once its calls have ended. */
  finish(stopReason: CompleteWorkerTurn['stopReason']): Promise<void>;
  fail(error: unknown): Promise<void>;
  /** Aborts it here; with `release`, a claimed step is offered to other workers immediately. */
  abandon(reason: TurnLostError, release: boolean): Promise<void>;
}

const heartbeatMs = 5_000;
/** A slower heartbeat is abandoned: the next one may get through. */
const heartbeatTimeoutMs = 10_000;
/** 32 MiB at 300 kB/s. */
const fileTimeoutMs = 120_000;
const maxFailureCharacters = 2_000;
/** Up to half a minute: how long the lease can last while the service is down. */
const longRetries = { maxRetries: 7 };

export function openTurn(claimed: WorkerTurn, host: Host): OpenTurn {
  const { workers, sleep } = host;
  const lost = new AbortController();
  let claim = claimed;
  const report = createReport();
  let requestedCalls: Call[] = [];
  let stepLoop: Promise<void> | undefined;
  let isOver = false;
  /** Set while a step is claimed; ends its heartbeats. */
  let heartbeats: AbortController | undefined;

  const text = createTextSender(async (deltas) => {
    const { cursor: after, workerTurnId } = claim;
    const cursor = await orLoseTurn(() => workers.append(workerTurnId, { deltas, after }, longRetries));
    claim = { ...claim, cursor };
  }, sleep);

  // ── The claim ──────────────────────────────────────────────────────────────────────────────────────────────────────

  function startStep(next: WorkerTurn): void {
    claim = next;
    heartbeats = new AbortController();
    // Text belongs to a response.
    if (next.pendingCalls.length === 0) text.open();
    void sendHeartbeats(next.workerTurnId, heartbeats.signal);
  }

  async function sendHeartbeats(workerTurnId: string, over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      await sleep(heartbeatMs, over).catch(() => {});
      if (over.aborted) return;
      const options = { maxRetries: 0, timeoutMs: heartbeatTimeoutMs, signal: over };
      // After any other failure the next heartbeat follows; the service knows when the lease has expired.
      await workers.heartbeat(workerTurnId, options).catch((error) => {
        if (isTurnLost(error)) lose(new TurnLostError(error.detail));
      });
    }
  }

  /** Loses the turn if the service says so, or was down for about as long as a lease lasts. */
  async function orLoseTurn<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof SignalboxError) || !(isTurnLost(error) || isTemporary(error))) throw error;
      lose(new TurnLostError(error.detail, { cause: error }));
      throw lost.signal.reason;
    }
  }

  function lose(reason: TurnLostError): void {
    heartbeats?.abort();
    heartbeats = undefined;
    text.close();
    lost.abort(reason);
    for (const call of requestedCalls.splice(0)) call.reject(reason);
  }

  async function complete(submission: CompleteWorkerTurn): Promise<void> {
    lost.signal.throwIfAborted();
    text.close();
    // No heartbeat may find the step completed before the response to this has arrived.
    heartbeats?.abort();
    heartbeats = undefined;
    try {
      await orLoseTurn(() => workers.complete(claim.workerTurnId, submission, longRetries));
    } catch (error) {
      if (!lost.signal.aborted) startStep(claim);
      throw error;
    }
  }

  function submit(given: CompleteWorkerTurn): Promise<void> {
    return report.send(given, complete);
  }

  // ── Steps ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  function stepSoon(): void {
    stepLoop ??= takeSteps().finally(() => {
      stepLoop = undefined;
      if (requestedCalls.length > 0) stepSoon();
    });
  }

  async function takeSteps(): Promise<void> {
    while (true) {
      // Calls that are made together come within one turn of the event loop.
      await sleep(0);
      const calls = requestedCalls;
      requestedCalls = [];
      if (calls.length === 0) return;
      try {
        const outcomes = await exchange(calls);
        for (const [index, call] of calls.entries()) {
          const outcome = outcomes[index];
          if (outcome) call.resolve(outcome);
          else call.reject(new Error('The service gave no outcome of the call'));
        }
      } catch (error) {
        if (error instanceof TurnLostError) lose(error);
        for (const call of calls) call.reject(error);
      }
    }
  }

  /** Completes the step with its calls, and returns their outcomes from the next one. */
  async function exchange(calls: readonly Call[]): Promise<CallOutcome[]> {
    lost.signal.throwIfAborted();
    await text.flush();
    const { step } = claim;
    let completeIt = () => submit({ toolCalls: calls.map(({ tool, input }) => ({ tool, input })) });
    while (true) {
      const next = await host.next(claim, open, completeIt);
      if (next.pendingCalls.length === 0 && next.step === step + 1) {
        startStep(next);
        return next.outcomes;
      }
      if (next.pendingCalls.length === 0 || next.step !== step) {
        host.adopt(next);
        lose(new TurnLostError('Another worker has gone on with the turn'));
        throw lost.signal.reason;
      }
      startStep(next);
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
      const message = messageOf(
        `The call has ended, but its result can't be sent: ${error.detail}`,
        maxFailureCharacters,
      );
      await complete({ toolResults: toolResults.map(({ toolCallId }) => ({ toolCallId, error: message })) });
    }
  }

  function request(tool: string, input: unknown, { run }: CallToolOptions = {}): Promise<CallOutcome> {
    const refused = refusal();
    if (refused) return refused;
    const { promise, resolve, reject } = deferred<CallOutcome>();
    requestedCalls.push({ tool, input: input ?? {}, run, resolve, reject });
    stepSoon();
    return promise;
  }

  /** From the transcript, which also has an edited input, unless a summary has replaced that part of it. */
  function resultOf({ toolCallId, output, error, status }: CallOutcome): ToolResultPart {
    const parts = claim.messages.flatMap(({ content }) => content.filter((part) => part.type === 'tool_result'));
    const found = parts.findLast((part) => part.toolCallId === toolCallId);
    const outcome = { ...(error === undefined ? { output } : { error }), outcomeUnknown: status === 'unknown' };
    return found ?? { type: 'tool_result', toolCallId, ...outcome };
  }

  /** Why the turn accepts no more calls. */
  function refusal(): Promise<never> | undefined {
    if (lost.signal.aborted) return Promise.reject(lost.signal.reason);
    return isOver ? Promise.reject(new TurnLostError('The turn is over')) : undefined;
  }

  const turn = {
    append(delta) {
      return markHandled(refusal() ?? text.add(delta));
    },
    appendReasoning(delta) {
      const shows = claim.showReasoning && delta !== '';
      return markHandled(refusal() ?? (shows ? text.add({ type: 'reasoning', delta }) : Promise.resolve()));
    },
    appendToolInput(index, tool, delta) {
      const shows = claim.showToolInput && delta !== '';
      return markHandled(
        refusal() ?? (shows ? text.add({ type: 'toolInput', index, tool, delta }) : Promise.resolve()),
      );
    },
    callTool<T>(tool: string, input: unknown, options?: CallToolOptions) {
      return markHandled(request(tool, input, options).then((outcome) => outputOf(outcome) as T));
    },
    toolResult(tool, input, options) {
      return markHandled(request(tool, input, options).then(resultOf));
    },
    fileContent(fileId) {
      return markHandled(refusal() ?? workers.fileContent(fileId, { signal: lost.signal, timeoutMs: fileTimeoutMs }));
    },
    usage: report.usage,
    providerCall: report.providerCall,
    source: report.source,
  } as Turn;
  for (const field of shown) Object.defineProperty(turn, field, { enumerable: true, get: () => claim[field] });

  const open: OpenTurn = {
    turn,
    signal: lost.signal,

    async runPending() {
      await completeCalls(await runCalls(claim.pendingCalls, () => undefined));
    },

    async finish(stopReason) {
      while (stepLoop) await stepLoop;
      if (lost.signal.aborted) return;
      isOver = true;
      await text.flush();
      await submit(stopReason ? { stopReason } : {});
    },

    async fail(error) {
      while (stepLoop) await stepLoop;
      if (lost.signal.aborted) return;
      isOver = true;
      // The error may be that the text can't be sent.
      await text.flush().catch(() => {});
      const code = error instanceof TurnFailedError ? { code: error.code } : {};
      await submit({ error: { ...code, message: shownMessageOf(error) } });
    },

    async abandon(reason, release) {
      const { workerTurnId, pendingCalls } = claim;
      // Calls that have started are not released: only this program knows whether they had their effect.
      const canRelease = release && heartbeats !== undefined && pendingCalls.length === 0;
      lose(reason);
      if (canRelease) await workers.release(workerTurnId, { maxRetries: 1 });
    },
  };

  startStep(claimed);
  return open;
}

/** The error's message if it was written to be shown, as end users may see it: any other can quote a prompt or a secret. */
function shownMessageOf(error: unknown): string {
  const isForUsers = [TurnFailedError, ToolFailedError, SignalboxError].some((kind) => error instanceof kind);
  if (isForUsers) return messageOf(error, maxFailureCharacters);
  const kind = error instanceof Error && /^\w{1,64}$/.test(error.name) ? ` (${error.name})` : '';
  return `The program that runs this turn failed${kind}. Its log has the reason.`;
}
