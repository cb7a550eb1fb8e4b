// The turn machine: one turn of a session, from its message to its end, step by step. A step is one model call and the tool
// calls that it requested.
//
// It is a generator over an injected model and injected tools. It yields what has happened or is about to happen, and the turn
// runner (node/turn-runner.ts) stores that before it asks for the next event: a tool call starts only after its start is stored.
// It knows no SQL, no HTTP and no chunks. The runner keeps `state` up to date: it changes operations in place when decisions and
// results arrive.
//
// After a crash, a new machine continues from the same state (recovery.ts). When its signal is aborted (an interrupt, the
// deadline), it throws the signal's reason, and the runner ends the calls that are running.
import type { EndUser, MessagePart, Model, SessionError, StopReason } from '@signalbox/contract';
import type { Definition } from '../agents/agents.ts';
import { orAborted } from '../lib/aborted.ts';
import type { Clock } from '../lib/clock.ts';
import { formatId } from '../lib/ids.ts';
import { storableText } from '../lib/text.ts';
import type { AskModel, ModelFailure, ReportedUsage } from '../models/model/model.ts';
import type { Compaction } from '../session-rows/compactions.ts';
import type { LeftOutColumn } from '../session-rows/left-out.ts';
import type { StoredResponse } from '../session-rows/operation-trace.ts';
import { isFinished, messageIdOf, type Operation, releasedCall } from '../session-rows/operations.ts';
import { isSubmitted } from '../session-rows/submission.ts';
import type { RunTool, ToolOutcome, TurnTool } from '../tools/tool/tool.ts';
import { modelName } from '../usage/prices.ts';
import { askModels, type ModelResponse, stepRequest } from './ask-models.ts';
import {
  CUT_OFF,
  callsOf,
  endCall,
  newCalls,
  newRan,
  noSuchTool,
  OUTCOME_UNKNOWN,
  responseParts,
  resultParts,
  type ShownRan,
  STARTED,
  toolOf,
} from './calls.ts';
import { compact } from './compact.ts';
import { nextPlace, type PlacedEntry } from './compaction.ts';
import type { EarlyPart } from './early-parts.ts';
import { firstOfResponse, isLastStep, judge } from './output.ts';
import { afterCrash } from './recovery.ts';
import { dropLeftOut } from './transcript-size.ts';

export interface TurnState {
  readonly organizationId: string;
  /** `ses_…` */
  readonly sessionId: string;
  readonly environment: string;
  readonly endUser: EndUser | null;
  readonly turn: number;
  readonly definition: Definition;
  /** The agent's model and its fallbacks, in the order in which they are called. */
  models: readonly Model[];
  tools: readonly TurnTool[];
  /** The note to the model about tools that are not available now. */
  unavailable: readonly string[];
  /** Changed in place. */
  readonly grantedTools: readonly string[];
  /** What models do not get, or null. The transcript has notes in place of messages already. */
  leftOut: LeftOutColumn;
  /** Messages, responses and tool results of all turns, without those that a summary replaces. */
  transcript: (PlacedEntry & { content: MessagePart[] })[];
  /** The summary; null if it has none. */
  compaction: Compaction | null;
  /** What the last model call of the session read and wrote, in tokens; null if nothing is known of it. */
  reportedTokens: number | null;
  /** Operations of this turn, in order; changed in place. */
  operations: Operation[];
  /** Model calls of the session, this turn included. */
  modelCalls: number;
  /** The text that the running model call has shown. */
  shownText: string;
  /** Calls that run on this node, and their results. */
  readonly underWay: Map<Operation, Promise<ToolOutcome>>;
}

/** What the machine needs from outside. */
export interface TurnPorts {
  /** What responds to a step: a model, or a worker. */
  ask: AskModel;
  /** For summaries. */
  askModel: AskModel;
  run: RunTool;
  /** Called before each model call: why it is not made. Otherwise it counts as made from then on. */
  refusal(modelCall: Operation, models: readonly Model[]): Promise<'budgetReached' | SessionError | undefined>;
  clock: Pick<Clock, 'now' | 'sleep'>;
  /** When the turn times out. */
  deadline: Date;
  /** From 0 to 1. */
  random(): number;
  /** Resolves when something has arrived for this session since the inbox was last read. */
  inboxCame(): Promise<void>;
  /** Whether a message waits for the end of this turn. */
  hasQueued(): boolean;
}

/** How a turn ends. `output` is the value that matches `outputSchema`. */
export type TurnEnd = NormalEnd | { stopReason: 'error'; error: SessionError };
export interface NormalEnd {
  stopReason: Exclude<StopReason, 'error'>;
  output?: unknown;
}

export type TurnEvent =
  /** The model begins to respond: what follows is of its response, which it writes anew if it fails. */
  | { type: 'responding'; modelCall: Operation; model: string }
  /** Some text of the model. */
  | { type: 'text'; delta: string }
  /** A piece of its reasoning, or of the input of a call, while it writes them. */
  | EarlyPart
  /**
   * The model call has a response. `calls` are the tool calls that it requests, `ran` what its provider ran itself. `end` is set if the turn ends with it, and
   * `results` are then the results that the model gets with the next turn.
   */
  | {
      type: 'responded';
      modelCall: Operation;
      model: Model;
      text: string;
      calls: Operation[];
      ran: ShownRan;
      usage: ReportedUsage;
      providerData?: unknown;
      end: NormalEnd | null;
      results: MessagePart[] | null;
    }
  /** A compaction starts when the runner asks for the next event. */
  | { type: 'compactionStarted'; operation: Operation }
  /** The messages were too long for the model that was to write the summary. Another compaction, of fewer of them, follows. */
  | { type: 'compactionFailed'; operation: Operation }
  /** From now on, the model gets the summary. `written`: null if no model wrote it. */
  | {
      type: 'compacted';
      operation: Operation;
      compaction: Compaction;
      tokensBefore: number;
      tokensAfter: number;
      written: { model: Model; usage: ReportedUsage } | null;
    }
  /** A model failed, and it or another is called: text that it has shown is void. */
  | { type: 'modelFailed'; modelCall: Operation; model: string; failure: ModelFailure }
  /**
   * No model is available: text that was shown is void. The runner parks the session until then and ends the generator, or
   * continues. `isFirst`: it was not parked before for this call.
   */
  | { type: 'modelUnavailable'; modelCall: Operation; failure: ModelFailure; retryAt: Date; isFirst: boolean }
  /**
   * The model call waits for a limit of the environment. The runner parks the session until then at the latest and ends the generator,
   * or continues.
   */
  | { type: 'modelLimited'; modelCall: Operation; failure: ModelFailure; until: Date }
  /**
   * A worker is to respond to the step, or to run calls of it. The runner offers it and ends the generator, or continues.
   */
  | { type: 'offer' }
  /** A tool call starts when the runner asks for the next event. The client runs a client tool's call from now on. */
  | { type: 'callStarted'; call: Operation; tool: TurnTool }
  /** The tool was removed since the call was requested: the call ends without having run. */
  | { type: 'callRefused'; call: Operation }
  /** A call that a worker started and did not finish is offered to workers again. */
  | { type: 'callReturned'; call: Operation }
  /** The operation has its result. */
  | { type: 'callEnded'; call: Operation }
  /** Something may have arrived: the runner puts decisions and results into `state.operations`. */
  | { type: 'inbox' }
  /** The next model call follows: every call of the step has a result, or there were none, and the model continues its text. */
  | { type: 'stepEnded'; results: MessagePart[] | null; nextStep: number }
  /**
   * The response does not match `outputSchema`: its text, which begins with that of `first`, is void, and the model is called once
   * more with the reason.
   */
  | { type: 'repair'; first: Operation; message: string; nextStep: number }
  /** Nothing can continue until something arrives. The runner parks the session and ends the generator, or continues. */
  | { type: 'wait' }
  /** `results` of the last step, if the turn ends before the model gets them. */
  | { type: 'end'; end: NormalEnd; results: MessagePart[] | null }
  /**
   * The turn fails. `asked`: because the model call did. `voidFrom`: text of this model call is void. `spent`: what a worker reports of
   * its call that failed.
   */
  | {
      type: 'fail';
      error: SessionError;
      asked: boolean;
      voidFrom: Operation | null;
      spent: { modelCall: Operation; model: Model; usage: ReportedUsage } | null;
    };

export async function* runTurn(state: TurnState, ports: TurnPorts, signal: AbortSignal): AsyncGenerator<TurnEvent> {
  const { definition, operations } = state;
  while (true) {
    signal.throwIfAborted();
    const step = Math.max(...operations.map((operation) => operation.step));
    const modelCall = operations.find((operation) => operation.step === step && operation.kind === 'model');
    if (!modelCall) {
      // A turn without a message: a caller asked for a compaction.
      if ((yield* compact(state, step, 'requested', ports, signal)) === 'over') return;
      return yield { type: 'end', end: { stopReason: 'endTurn' }, results: null };
    }
    if (modelCall.status === 'pending') {
      // A worker's submission has been counted already.
      if (!isSubmitted(modelCall)) {
        if ((yield* compact(state, step, 'due', ports, signal)) === 'over') return;
        const refusal = await ports.refusal(modelCall, state.models);
        if (refusal) return yield refused(modelCall, refusal);
        if (definition.model.provider === 'worker') {
          yield { type: 'offer' };
          continue;
        }
      }
      const response = yield* askModels(state, stepRequest(state, modelCall, ports), ports, signal);
      if (!response) return;
      if ('tooLong' in response) {
        const compacted = yield* compact(state, step, 'refused', ports, signal);
        if (compacted === 'over') return;
        if (compacted === 'nothing') return yield refused(modelCall, response.tooLong);
        continue;
      }
      if (yield* takeResponse(state, modelCall, response)) return;
    }

    const calls = callsOf(operations, step);
    if (calls.length === 0) {
      const judgement = await judge(state, modelCall);
      if (judgement.type === 'end') return yield { type: 'end', end: judgement.end, results: null };
      if (judgement.type === 'fail') {
        return yield failed(judgement.error, { voidFrom: firstOfResponse(operations, modelCall) });
      }
      if (judgement.type === 'continue') {
        yield { type: 'stepEnded', results: null, nextStep: step + 1 };
        continue;
      }
      if (isLastStep(state)) return yield { type: 'end', end: { stopReason: 'maxSteps' }, results: null };
      addEntry(state, { role: 'user', content: [{ type: 'text', text: judgement.message }] });
      const first = firstOfResponse(operations, modelCall);
      yield { type: 'repair', first, message: judgement.message, nextStep: step + 1 };
      continue;
    }
    yield* runCalls(state, step, ports, signal);

    const calledNow = callsOf(operations, step);
    const results = resultParts(calledNow, state.transcript);
    if (isLastStep(state)) return yield { type: 'end', end: { stopReason: 'maxSteps' }, results };
    addEntry(state, { role: 'tool', content: results });
    // From here on they are in the transcript.
    for (const call of calledNow) call.output = null;
    yield { type: 'stepEnded', results, nextStep: step + 1 };
  }
}

export function failed(
  error: SessionError,
  more: Partial<Omit<Extract<TurnEvent, { type: 'fail' }>, 'type' | 'error'>> = {},
): TurnEvent {
  return { type: 'fail', error, asked: false, voidFrom: null, spent: null, ...more };
}

/** The end of a turn whose model call, or compaction, is refused. */
export function refused(modelCall: Operation, refusal: 'budgetReached' | SessionError): TurnEvent {
  if (refusal === 'budgetReached') return { type: 'end', end: { stopReason: refusal }, results: null };
  Object.assign(modelCall, { status: 'failed', error: refusal.message });
  return failed(refusal);
}

function addEntry(
  state: TurnState,
  entry: Pick<TurnState['transcript'][number], 'role' | 'content' | 'providerData' | 'messageId'>,
): void {
  state.transcript.push({ ...entry, ...nextPlace(state.transcript, state.compaction, state.turn) });
}

/** Returns whether the turn is over. */
async function* takeResponse(
  state: TurnState,
  modelCall: Operation,
  { model, calls: asked, ran, finish: { reason, usage, providerData, refusedFiles } }: ModelResponse,
): AsyncGenerator<TurnEvent, boolean> {
  const wasCut = reason === 'maxOutputTokens';
  // First, because programs show the calls of a response in the order of their ids.
  const shown = newRan(ran);
  const judged = await newCalls(state, modelCall.step, asked);
  // It is not known which of them are complete: a call that was cut off before its input has a valid input, an empty object.
  const calls = wasCut ? judged.map((call) => ({ ...call, status: 'failed' as const, error: CUT_OFF })) : judged;
  const text = storableText(state.shownText);
  const kept = providerData === undefined ? {} : { providerData };
  if (refusedFiles) {
    const { turn, leftOut } = state;
    state.leftOut = [
      ...(leftOut ?? []),
      { turn, step: modelCall.step, model: modelName(model), fileIds: [...refusedFiles] },
    ];
  }
  state.modelCalls += 1;
  state.shownText = '';
  state.operations.push(...calls);
  const messageId = messageIdOf(modelCall);
  addEntry(state, { role: 'assistant', content: responseParts(text, calls, shown), ...kept, messageId });
  // Some providers report nothing, and a worker may report several calls.
  const isKnown = usage.inputTokens > 0 && model.provider !== 'worker';
  state.reportedTokens = isKnown ? usage.inputTokens + usage.outputTokens : null;
  modelCall.status = 'succeeded';
  modelCall.model = modelName(model);
  if (reason === 'refusal' || wasCut) modelCall.output = { stopReason: reason };
  const judgement = calls.length === 0 || wasCut ? await judge(state, modelCall) : undefined;
  const end = judgement?.type === 'end' ? judgement.end : null;
  const results = end && calls.length > 0 ? resultParts(calls, state.transcript) : null;
  yield { type: 'responded', modelCall, model, text, calls, ran: shown, usage, ...kept, end, results };
  return end !== null;
}

/** Runs all calls that may run, concurrently, until every call of the step has its result. */
async function* runCalls(
  state: TurnState,
  step: number,
  ports: TurnPorts,
  signal: AbortSignal,
): AsyncGenerator<TurnEvent> {
  const { definition, operations, tools, underWay } = state;
  const begin = (call: Operation, tool: TurnTool) => {
    const { organizationId, environment, endUser } = state;
    const operationId = formatId('op', call.operationId);
    const onResponse = (response: StoredResponse) => {
      call.trace = { response };
    };
    const { input } = call;
    const running = ports.run({ organizationId, environment, endUser, tool, input, operationId, onResponse }, signal);
    // If the turn is stopped before it awaits this call, the rejection has no other handler.
    running.catch(() => {});
    underWay.set(call, running);
  };
  // Calls that are running before this machine has started any were interrupted by a crash.
  for (const call of callsOf(operations, step)) {
    if (call.status !== 'running') continue;
    const tool = toolOf(tools, call);
    const recovery = afterCrash(call, tool?.runsAs);
    if (recovery === 'unknown') {
      Object.assign(call, { status: 'unknown', error: OUTCOME_UNKNOWN });
      yield { type: 'callEnded', call };
    } else if (recovery === 'failed') {
      Object.assign(call, { status: 'failed', error: noSuchTool(call.tool!, state.unavailable) });
      yield { type: 'callEnded', call };
    } else if (recovery === 'awaited') {
      call.status = releasedCall.to;
      yield { type: 'callReturned', call };
    } else {
      begin(call, tool!);
    }
  }

  while (true) {
    // Also if the turn could not be parked because it was stopped.
    signal.throwIfAborted();
    dropLeftOut(callsOf(operations, step));
    for (const call of callsOf(operations, step)) {
      if (call.status !== 'ready') continue;
      signal.throwIfAborted();
      const tool = toolOf(tools, call);
      if (!tool) {
        Object.assign(call, { status: 'failed', error: noSuchTool(call.tool!, state.unavailable) });
        yield { type: 'callRefused', call };
      } else {
        call.status = STARTED[tool.runsAs];
        yield { type: 'callStarted', call, tool };
        if (call.status === 'running') begin(call, tool);
      }
    }
    if (underWay.size === 0) {
      // Not sooner: the end of a call is stored only once it was yielded.
      const calls = callsOf(operations, step);
      if (calls.every(isFinished)) return;
      // A worker runs the client calls of its agent.
      const isOwn = definition.model.provider === 'worker' && calls.some(({ status }) => status === 'awaiting_result');
      yield { type: isOwn ? 'offer' : 'wait' };
    } else {
      // A tool may ignore the signal.
      const ended = await orAborted(Promise.race([...[...underWay].map(nameOutcome), ports.inboxCame()]), signal);
      signal.throwIfAborted();
      if (ended) {
        underWay.delete(ended.call);
        endCall(ended.call, ended.outcome);
        yield { type: 'callEnded', call: ended.call };
      } else {
        yield { type: 'inbox' };
      }
    }
  }
}

async function nameOutcome([call, outcome]: [Operation, Promise<ToolOutcome>]) {
  return { call, outcome: await outcome };
}
