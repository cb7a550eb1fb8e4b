// The attempts of one model call: the agent's model, its fallbacks, and the waits between.
//
// A round calls the models one after another until one responds, so a fallback is called before an earlier model is called a second
// time. If the first of them finds the request at fault, the turn fails at once. After a round without a response:
//
//   1. The next round follows after a short wait, on this node: five rounds in all.
//   2. Then the session is parked until the next round, for as long as the agent waits for its models
//      (`limits.modelOutageSeconds`). From then on each claim makes one round. A provider that asks for a longer wait than a node
//      should spend on it gets this at once, and so does a model that the node knows to be unavailable (models/availability.ts).
//   3. Then the turn fails.
//
// A call that is more than the environment's own limit (models/limits/) is not an attempt. The session is parked until its turn comes,
// however long that takes, and no fallback is called instead.
//
// If none of the models is called because the node knows all of them to be unavailable, and a person waits for the response, the
// round is repeated as a trial: the first model that may be tried at that moment is called.
//
// For the rest of the turn, the model that responded is called first: it does not pay for another's time-outs with every step, and
// the reasoning in the transcript is its own. The next turn begins with the agent's own model again.
import type { Model, SessionError } from '@signalbox/contract';
import { webSearchOf } from '../agents/read-definition.ts';
import { exponentialMs } from '../lib/back-off.ts';
import type { Clock } from '../lib/clock.ts';
import { type AskModel, type ModelCall, type ModelEvent, ModelFailure } from '../models/model/model.ts';
import { sentToolsOf } from '../models/tools/tools.ts';
import { leftOutOf, refusedFilesOf } from '../session-rows/left-out.ts';
import {
  recordFailedAttempt,
  recordFirstToken,
  recordLeftOut,
  recordSuccess,
} from '../session-rows/operation-trace.ts';
import type { Operation } from '../session-rows/operations.ts';
import type { Ran } from '../session-rows/ran.ts';
import { modelName } from '../usage/prices.ts';
import type { AskedCall } from './calls.ts';
import { contextOf } from './context.ts';
import { createEarlyParts } from './early-parts.ts';
import type { TurnEvent, TurnPorts, TurnState } from './turn.ts';

/** A call of the model of a step, or of the one that writes a summary. */
export interface ModelRequest {
  operation: Operation;
  /** In the order in which they are called. */
  models: readonly Model[];
  ask: AskModel;
  callOf(model: Model): ModelCall;
}

export interface ModelResponse {
  model: Model;
  /** A step's text, which is shown while it is written, is `state.shownText` as well. */
  text: string;
  calls: readonly AskedCall[];
  /** What the provider ran itself, and what the text cites. */
  ran: Ran;
  finish: Extract<ModelEvent, { type: 'finish' }>;
}

const MAX_QUICK_ROUNDS = 5;
const FIRST_RETRY_MS = 500;
// A session that waits longer than this is parked.
const FIRST_PARKED_MS = 15_000;
// With its jitter, at most 5 minutes: as long as users of a provider that is back should wait at most.
const MAX_PARKED_MS = 150_000;

/** The call is too long for a model: it may be repeated with a shorter transcript. */
export interface TooLong {
  tooLong: SessionError;
}

/** The call of a step. */
export function stepRequest(state: TurnState, operation: Operation, { ask }: TurnPorts): ModelRequest {
  const { view, tokens: inputTokens } = contextOf(state);
  const callOf = (model: Model) => ({ ...modelCallOf(state, model, view), inputTokens });
  return { operation, models: state.models, ask, callOf };
}

/** What a call of a model needs of the state. */
export type PromptState = Pick<
  TurnState,
  'organizationId' | 'sessionId' | 'environment' | 'definition' | 'modelCalls' | 'tools' | 'unavailable' | 'leftOut'
>;

/** Returns the response. Undefined if the turn has failed, which was yielded. */
export async function* askModels(
  state: TurnState,
  request: ModelRequest,
  ports: TurnPorts,
  signal: AbortSignal,
): AsyncGenerator<TurnEvent, ModelResponse | TooLong | undefined> {
  const { operation: modelCall, models } = request;
  const isStep = modelCall.kind === 'model';
  while (true) {
    // Also after a failure on another node.
    const waitMs = (modelCall.retryAt?.getTime() ?? 0) - ports.clock.now().getTime();
    if (waitMs > 0) await ports.clock.sleep(waitMs, signal);

    let failures = yield* askInOrder(state, request, ports, signal);
    if (Array.isArray(failures) && allSkipped(failures) && isAwaited(modelCall, ports))
      failures = yield* askInOrder(state, { ...request, callOf: awaited(request) }, ports, signal);
    if ('waiting' in failures) {
      const { waiting: failure, until } = failures;
      // It is not parked if something arrived at that moment.
      while (true) {
        yield { type: 'modelLimited', modelCall, failure, until };
        signal.throwIfAborted();
      }
    }
    if (!Array.isArray(failures)) return failures;
    if (!allSkipped(failures)) modelCall.failures += 1;
    const next = afterRound(state, modelCall, failures, ports);
    if (next.type === 'fail') {
      modelCall.status = 'failed';
      modelCall.error = next.error.message;
      const [{ usage }, model] = [failures.at(-1)!, models[failures.length - 1]!];
      if (usage) modelCall.model = modelName(model);
      const spent = usage ? { modelCall, model, usage } : null;
      yield { type: 'fail', error: next.error, asked: isStep, voidFrom: isStep ? modelCall : null, spent };
      return undefined;
    }
    modelCall.retryAt = next.at;
    const isFirst = modelCall.unavailableSince === null;
    if (next.type === 'park') modelCall.unavailableSince ??= ports.clock.now();
    const [failure, model] = [failures.at(-1)!, modelName(models[failures.length - 1]!)];
    // A parked session is claimed for the next round. It is not parked if something arrived at that moment.
    do {
      yield next.type === 'park'
        ? { type: 'modelUnavailable', modelCall, failure: next.failure, retryAt: next.at, isFirst }
        : { type: 'modelFailed', modelCall, model, failure };
      signal.throwIfAborted();
    } while (next.type === 'park');
  }
}

/** The call waits for a limit of the environment: until when, at the latest. */
interface Limited {
  waiting: ModelFailure;
  until: Date;
}

/** One round. Returns the failures in the order of the models if none of them has responded. */
async function* askInOrder(
  state: TurnState,
  request: ModelRequest,
  { clock }: Pick<TurnPorts, 'clock'>,
  signal: AbortSignal,
): AsyncGenerator<TurnEvent, ModelResponse | TooLong | Limited | ModelFailure[]> {
  const { operation: modelCall, models } = request;
  const isStep = modelCall.kind === 'model';
  const failures: ModelFailure[] = [];
  for (const [index, model] of models.entries()) {
    const outcome = yield* askModel(state, request, model, clock, signal);
    if (!(outcome instanceof ModelFailure)) {
      if (isStep) state.models = [model, ...models.filter((other) => other !== model)];
      return outcome;
    }
    if (outcome.waitsUntil) return { waiting: outcome, until: outcome.waitsUntil };
    if (isStep) state.modelCalls += 1;
    const { code, message } = outcome;
    if (code === 'model_context_too_long') {
      yield { type: 'modelFailed', modelCall, model: modelName(model), failure: outcome };
      return { tooLong: { code, message } };
    }
    failures.push(outcome);
    // The request may still be right for another model if this one was called only because the first is unavailable.
    if ((outcome.isOfRequest && index === 0) || index === models.length - 1) break;
    if (!outcome.isSkipped) yield { type: 'modelFailed', modelCall, model: modelName(model), failure: outcome };
  }
  return failures;
}

/** Whether a person waits for the response: the call is new, or a message waits for the end of its turn. */
function isAwaited({ unavailableSince }: Operation, { hasQueued }: Pick<TurnPorts, 'hasQueued'>): boolean {
  return unavailableSince === null || hasQueued();
}

function awaited({ callOf }: ModelRequest): ModelRequest['callOf'] {
  return (model) => ({ ...callOf(model), isAwaited: true });
}

function allSkipped(failures: readonly ModelFailure[]): boolean {
  return failures.every(({ isSkipped }) => isSkipped);
}

async function* askModel(
  state: TurnState,
  { operation, ask, callOf }: ModelRequest,
  model: Model,
  clock: Pick<Clock, 'now'>,
  signal: AbortSignal,
): AsyncGenerator<TurnEvent, ModelResponse | ModelFailure> {
  const startedAt = clock.now();
  const { output: submission } = operation;
  const isStep = operation.kind === 'model';
  state.shownText = '';
  let text = '';
  const calls: ModelResponse['calls'][number][] = [];
  let ran: Ran = { calls: [], sources: [] };
  const { operationId } = operation;
  const call = { ...callOf(model), operationId, ...(operation.unavailableSince && { wasParked: true }) };
  recordLeftOut(operation, state.operations, sentToolsOf(call)?.leftOut);
  const early = createEarlyParts();
  // A step of a worker is announced when it is offered.
  let isAnnounced = !isStep || model.provider === 'worker';
  let hasBegun = false;
  function failedWith(failure: ModelFailure): ModelFailure {
    // One that was skipped is not an attempt.
    if (!failure.isSkipped) recordFailedAttempt(operation, modelName(model), [startedAt, clock.now()], failure);
    return failure;
  }
  function* announced(events: readonly TurnEvent[]): Generator<TurnEvent> {
    if (!isAnnounced) yield { type: 'responding', modelCall: operation, model: modelName(model) };
    isAnnounced = true;
    yield* events;
  }
  try {
    for await (const event of ask(call, signal)) {
      signal.throwIfAborted();
      // A worker's program has its own model.
      if (!hasBegun && event.type !== 'finish' && model.provider !== 'worker') recordFirstToken(operation, clock.now());
      hasBegun = true;
      switch (event.type) {
        case 'text':
          text += event.delta;
          if (!isStep) break;
          state.shownText = text;
          yield* announced([...early.rest(), event]);
          break;
        case 'shown':
          text += event.text;
          state.shownText = text;
          break;
        case 'reasoning':
        case 'toolInput': {
          const isShown = event.type === 'reasoning' ? call.shows?.reasoning : call.shows?.toolInput;
          const events = isShown ? early.add(event) : [];
          if (events.length > 0) yield* announced(events);
          break;
        }
        case 'toolCall':
          calls.push(event);
          break;
        case 'ran':
          ran = event;
          break;
        case 'finish':
          yield* announced(early.rest());
          recordSuccess(operation, modelName(model), [startedAt, clock.now()], event.sentWithout);
          return { model, text, calls, ran, finish: event };
      }
    }
    const message = 'The model’s response ended without a finish reason.';
    return failedWith(new ModelFailure('model_protocol', message, { retryable: true }));
  } catch (error) {
    // Reading a worker's submission takes it from the operation. What it used counts although the turn is stopped.
    if (signal.aborted) operation.output = submission;
    signal.throwIfAborted();
    if (!(error instanceof ModelFailure)) throw error;
    return failedWith(error);
  }
}

type AfterRound =
  | { type: 'fail'; error: SessionError }
  | { type: 'retry'; at: Date }
  | { type: 'park'; at: Date; failure: ModelFailure };

/** What follows a round in which these failures happened, in the order of the models. */
function afterRound(
  { definition }: TurnState,
  { failures: rounds, unavailableSince }: Operation,
  failures: readonly ModelFailure[],
  { clock, deadline, random }: TurnPorts,
): AfterRound {
  const retryable = failures.filter((failure) => failure.retryable);
  const failure = retryable.at(-1) ?? failures.at(-1)!;
  const { code, message } = failure;
  const now = clock.now();
  const after = (ms: number) => new Date(now.getTime() + Math.ceil(ms));
  // The first that may be called again.
  const askedMs = Math.min(...retryable.map(({ retryAfterMs = 0 }) => retryAfterMs));
  if (retryable.length === 0) {
    const { retryWithout } = failure;
    return { type: 'fail', error: { code, message, ...(retryWithout && { retryWithout }) } };
  }

  const outageMs = definition.limits.modelOutageSeconds * 1000;
  const leftMs = deadline.getTime() - now.getTime();
  const isSkipped = allSkipped(failures);
  if (!isSkipped && unavailableSince === null && rounds < MAX_QUICK_ROUNDS) {
    const waitMs = Math.max(exponentialMs(rounds, FIRST_RETRY_MS) * (1 + random() / 4), askedMs);
    if (askedMs < leftMs && (outageMs === 0 || waitMs <= FIRST_PARKED_MS)) return { type: 'retry', at: after(waitMs) };
    if (outageMs === 0)
      return { type: 'fail', error: { code, message: waitTooLong(message, askedMs, leftMs, 'the turn has N left') } };
  }
  const outageLeftMs = (unavailableSince ?? now).getTime() + outageMs - now.getTime();
  if (outageLeftMs <= 0) return { type: 'fail', error: { code, message } };
  // The pause of a model that was not called is the node's own.
  if (!isSkipped && askedMs > outageLeftMs)
    return {
      type: 'fail',
      error: { code, message: waitTooLong(message, askedMs, outageLeftMs, 'the session waits N at most') },
    };
  const parkedRounds = Math.max(1, rounds - MAX_QUICK_ROUNDS + 1);
  // Many sessions lose their model at the same moment, and their provider asks all of them for the same wait.
  const backOffMs = isSkipped ? 0 : exponentialMs(parkedRounds, FIRST_PARKED_MS, MAX_PARKED_MS) * (1 + random());
  const waitMs = Math.max(backOffMs, askedMs + FIRST_PARKED_MS * random());
  return { type: 'park', at: after(Math.min(waitMs, outageLeftMs)), failure };
}

/** Waiting would only end the turn later, without saying why. */
function waitTooLong(message: string, askedMs: number, leftMs: number, limit: string): string {
  const [asked, left] = [askedMs, Math.max(leftMs, 0)].map((ms) => Math.ceil(ms / 1000));
  return `${message}; the provider asks for a wait of ${asked} seconds, but ${limit.replace('N', String(left))}`;
}

export function modelCallOf(state: PromptState, config: Model, transcript: ModelCall['transcript']): ModelCall {
  const { organizationId, sessionId, environment, definition, modelCalls, tools, unavailable } = state;
  return {
    organizationId,
    sessionId,
    environment,
    config,
    instructions: [definition.instructions, ...unavailable].filter((text) => text !== '').join('\n\n'),
    tools,
    webSearch: webSearchOf(definition, leftOutOf(state.leftOut).tools),
    limits: definition.limits,
    outputSchema: definition.outputSchema,
    transcript,
    withoutFiles: leftOutOf(state.leftOut).fileIds,
    refusedFiles: refusedFilesOf(state.leftOut, modelName(config)),
    shows: { reasoning: definition.showReasoning, toolInput: definition.showToolInput },
    callsBefore: modelCalls,
  };
}
