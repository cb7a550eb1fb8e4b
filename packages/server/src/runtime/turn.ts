// The turn machine: one turn of a Session, from its message to its end, step by step. A step is one model call and the tool
// calls that it asked for.
//
// It is a generator over an injected model and injected tools. It yields what has happened or is about to happen, and whoever
// drives it stores that before asking for more: so a tool call starts only after "it starts" is on disk. It knows no SQL, no
// HTTP and no chunks. The driver keeps `state` true: it changes operations in place when decisions and results come in.
//
// Begun again from the same state after a crash it goes on where the state says, and nowhere else.
import type { Budget, MessagePart, SessionError, StopReason } from '@signalbox/contract';
import type { Definition } from '../agents/agents.ts';
import { mayRepeat, needsApproval } from '../agents/definition.ts';
import { formatId, newUuid } from '../lib/ids.ts';
import { storableJson, storableText } from '../lib/text.ts';
import { isFinished, type Operation, type TokenUsage, toolCallIdOf } from '../sessions/operations.ts';
import { type AskModel, type ModelCall, ModelFailure } from './models/model.ts';
import { inputErrors } from './tools/input.ts';
import type { RunTool } from './tools/tool.ts';

export interface TurnState {
  readonly organizationId: string;
  readonly environment: string;
  readonly turn: number;
  readonly definition: Definition;
  readonly budget: Budget | null;
  /** What the model was told and answered, of all turns. */
  transcript: { role: 'user' | 'assistant' | 'tool'; content: MessagePart[] }[];
  /** Of this turn, in order; changed in place. */
  operations: Operation[];
  /** Of the Session, this turn included. */
  steps: number;
  tokens: number;
  modelCalls: number;
}

/** What the machine needs from outside. */
export interface TurnPorts {
  ask: AskModel;
  run: RunTool;
  /** Resolves after `ms`, or rejects with the signal's reason. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** From 0 to 1. */
  random(): number;
  /** Resolves when something came for this Session since it was last asked. */
  inboxCame(): Promise<void>;
}

export type TurnEvent =
  /** Some text of the model. */
  | { type: 'text'; delta: string }
  /** The model call ended. `calls` are the tool calls it asked for; without any the turn ends with `stopReason`. */
  | {
      type: 'answered';
      modelCall: Operation;
      text: string;
      calls: Operation[];
      usage: TokenUsage;
      stopReason: StopReason | null;
    }
  /** The model call failed and is made again: text it has shown is void. */
  | { type: 'modelFailed'; modelCall: Operation; failure: ModelFailure }
  /** A tool call starts as soon as the next event is asked for; a client tool's is the integrator's from now on. */
  | { type: 'callStarted'; call: Operation }
  /** Its result stands in the operation. */
  | { type: 'callEnded'; call: Operation }
  /** Something may have come: decisions and results belong into `state.operations`. */
  | { type: 'inbox' }
  /** Every call of the step has a result, and the model is asked for the next step. */
  | { type: 'stepEnded'; results: MessagePart[]; nextStep: number }
  /** Nothing can proceed until what is awaited comes. The driver parks the Session and ends the generator, or goes on. */
  | { type: 'wait' }
  /** `results` of the last step, where the turn ends before the model hears of them. */
  | { type: 'end'; stopReason: StopReason; results: MessagePart[] | null }
  | { type: 'fail'; error: SessionError };

const MAX_MODEL_ATTEMPTS = 5;
const FIRST_RETRY_MS = 500;
const MAX_RETRY_AFTER_MS = 60_000;

export async function* runTurn(state: TurnState, ports: TurnPorts, signal: AbortSignal): AsyncGenerator<TurnEvent> {
  while (true) {
    const step = Math.max(...state.operations.map((operation) => operation.step));
    const modelCall = state.operations.find((operation) => operation.step === step && operation.kind === 'model')!;
    if (modelCall.status === 'pending') {
      if (isBudgetUsed(state)) return yield { type: 'end', stopReason: 'budgetReached', results: null };
      const ended = yield* askModel(state, modelCall, ports, signal);
      if (ended) return;
    }
    yield* runCalls(state, step, ports, signal);

    const results = callsOf(state, step).map(resultPart);
    state.transcript.push({ role: 'tool', content: results });
    if (step >= state.definition.limits.maxStepsPerTurn) return yield { type: 'end', stopReason: 'maxSteps', results };
    yield { type: 'stepEnded', results, nextStep: step + 1 };
  }
}

/** Returns whether the turn is over. */
async function* askModel(
  state: TurnState,
  modelCall: Operation,
  ports: TurnPorts,
  signal: AbortSignal,
): AsyncGenerator<TurnEvent, boolean> {
  for (let attempt = 1; ; attempt += 1) {
    let text = '';
    const asked: { name: string; input: unknown }[] = [];
    try {
      for await (const event of ports.ask(modelCallOf(state), signal)) {
        signal.throwIfAborted();
        if (event.type === 'text') {
          text += event.delta;
          yield { type: 'text', delta: event.delta };
        } else if (event.type === 'toolCall') {
          asked.push(event);
        } else {
          const calls = asked.map(({ name, input }, index) => newCall(state, modelCall.step, index + 1, name, input));
          const stopReason = calls.length > 0 ? null : event.reason === 'refusal' ? 'refusal' : 'endTurn';
          state.modelCalls += 1;
          state.steps += 1;
          state.tokens += event.usage.inputTokens + event.usage.outputTokens;
          state.operations.push(...calls);
          state.transcript.push({ role: 'assistant', content: answerParts(storableText(text), calls) });
          Object.assign(modelCall, { status: 'succeeded', usage: event.usage });
          yield { type: 'answered', modelCall, text: storableText(text), calls, usage: event.usage, stopReason };
          return stopReason !== null;
        }
      }
      throw new ModelFailure('model_protocol', 'The model ended its answer without saying so.', { retryable: true });
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ModelFailure)) throw error;
      state.modelCalls += 1;
      if (!error.retryable || attempt === MAX_MODEL_ATTEMPTS) {
        modelCall.status = 'failed';
        modelCall.error = error.message;
        yield { type: 'fail', error: { code: error.code, message: error.message } };
        return true;
      }
      yield { type: 'modelFailed', modelCall, failure: error };
      await ports.sleep(retryDelayMs(attempt, error, ports.random), signal);
    }
  }
}

/** Runs what may run, together, until every call of the step has its result. */
async function* runCalls(
  state: TurnState,
  step: number,
  ports: TurnPorts,
  signal: AbortSignal,
): AsyncGenerator<TurnEvent> {
  const underWay = new Map<Operation, Promise<Operation>>();
  const begin = (call: Operation) => {
    const running = start(state, call, ports, signal);
    // Where the turn breaks off before it asks for this one, nobody is left to hear of its end.
    running.catch(() => {});
    underWay.set(call, running);
  };
  // What the machine finds running has been left so by a worker that died.
  for (const call of callsOf(state, step)) {
    if (call.status !== 'running') continue;
    const tool = toolOf(state, call);
    if (tool && mayRepeat(tool)) {
      begin(call);
    } else {
      Object.assign(call, { status: 'unknown', error: OUTCOME_UNKNOWN });
      yield { type: 'callEnded', call };
    }
  }

  while (true) {
    for (const call of callsOf(state, step)) {
      if (call.status !== 'ready') continue;
      const tool = toolOf(state, call);
      if (!tool) {
        Object.assign(call, { status: 'failed', error: noSuchTool(call.tool!) });
        yield { type: 'callEnded', call };
      } else {
        call.status = tool.type === 'client' ? 'awaiting_result' : 'running';
        yield { type: 'callStarted', call };
        if (tool.type !== 'client') begin(call);
      }
    }
    if (underWay.size === 0) {
      // Not sooner: a call that has ended is not stored before its end was yielded.
      if (callsOf(state, step).every(isFinished)) return;
      yield { type: 'wait' };
    } else {
      const ended = await Promise.race([...underWay.values(), ports.inboxCame()]);
      signal.throwIfAborted();
      if (ended) {
        underWay.delete(ended);
        yield { type: 'callEnded', call: ended };
      } else {
        yield { type: 'inbox' };
      }
    }
  }
}

async function start(state: TurnState, call: Operation, ports: TurnPorts, signal: AbortSignal): Promise<Operation> {
  const tool = toolOf(state, call);
  if (tool?.type !== 'http') throw new TypeError('Only http tools are run here');
  const { organizationId, environment } = state;
  const operationId = formatId('op', call.operationId);
  const outcome = await ports.run({ organizationId, environment, tool, input: call.input, operationId }, signal);
  if (outcome.error === undefined) Object.assign(call, { status: 'succeeded', output: storableJson(outcome.output) });
  else Object.assign(call, { status: 'failed', error: storableText(outcome.error) });
  return call;
}

/** A call as it is stored: waiting for a person, ready, or refused at once where there is no such tool or no such input. */
function newCall(state: TurnState, step: number, index: number, name: string, given: unknown): Operation {
  const input = storableJson(given);
  const call: Operation = {
    turn: state.turn,
    step,
    index,
    operationId: newUuid(),
    kind: 'tool',
    status: 'ready',
    tool: storableText(name),
    input,
    output: null,
    error: null,
    usage: null,
    fromSeq: null,
  };
  const tool = toolOf(state, call);
  if (!tool) return { ...call, status: 'failed', error: noSuchTool(call.tool!) };
  const wrong = inputErrors(tool.inputSchema, input);
  if (wrong) return { ...call, status: 'failed', error: `The input does not match the tool's schema: ${wrong}` };
  return needsApproval(tool) ? { ...call, status: 'awaiting_approval' } : call;
}

function toolOf(state: TurnState, call: Operation) {
  return state.definition.tools.find(({ name }) => name === call.tool);
}

function callsOf(state: TurnState, step: number): Operation[] {
  return state.operations.filter((operation) => operation.step === step && operation.kind === 'tool');
}

function modelCallOf(state: TurnState): ModelCall {
  const { organizationId, environment, definition, transcript, modelCalls } = state;
  return {
    organizationId,
    environment,
    config: definition.model,
    instructions: definition.instructions,
    tools: definition.tools,
    limits: definition.limits,
    transcript,
    callsBefore: modelCalls,
  };
}

function answerParts(text: string, calls: readonly Operation[]): MessagePart[] {
  return [
    ...(text === '' ? [] : [{ type: 'text' as const, text }]),
    ...calls.map((call) => ({
      type: 'tool_call' as const,
      toolCallId: toolCallIdOf(call),
      tool: call.tool!,
      input: call.input,
    })),
  ];
}

function resultPart(call: Operation): MessagePart {
  return {
    type: 'tool_result',
    toolCallId: toolCallIdOf(call),
    ...(call.error === null ? { output: call.output ?? null } : { error: call.error }),
    ...(call.status === 'unknown' && { outcomeUnknown: true }),
  };
}

function isBudgetUsed({ budget, steps, tokens }: TurnState): boolean {
  if (!budget) return false;
  return (
    steps >= (budget.maxSteps ?? Number.POSITIVE_INFINITY) || tokens >= (budget.maxTokens ?? Number.POSITIVE_INFINITY)
  );
}

/** Doubling, with up to a quarter more so that Sessions do not ask again together; never before the provider says. */
function retryDelayMs(attempt: number, failure: ModelFailure, random: () => number): number {
  const backoff = FIRST_RETRY_MS * 2 ** (attempt - 1) * (1 + random() / 4);
  return Math.max(backoff, Math.min(failure.retryAfterMs ?? 0, MAX_RETRY_AFTER_MS));
}

function noSuchTool(name: string): string {
  return `There is no tool named "${name}".`;
}

const OUTCOME_UNKNOWN = 'The service stopped while this call ran. It may or may not have had its effect.';
