// How the turn machine compacts a transcript (compaction.ts has the rules): before a model call that would be too long, after one that
// its provider refused as too long, and in a turn that does nothing else, because a caller asked for it.
//
// A compaction is an operation of the step, stored before it starts, and its call of a model is like any other: with fallbacks,
// retries, a budget and a price. If several are needed, each is stored before the next begins, so a crash loses one at most.
//
// An agent of workers has no model that could write a summary, unless `model.compaction` names one. Its messages are then left out
// without a summary, once they would have more than 4 MiB: its program has a context of its own, and keeps what it needs.
import { type Model, modelFacts } from '@signalbox/contract';
import { isSameJson } from '../lib/json/same-json.ts';
import { storableText } from '../lib/text.ts';
import type { ModelCall } from '../models/model/model.ts';
import { newCompaction } from '../session-rows/operations.ts';
import { modelName } from '../usage/prices.ts';
import { askModels, type TooLong } from './ask-models.ts';
import {
  boundedSummary,
  CONTEXT_MAX_TOKENS,
  type CompactionPart,
  maxTokensOf,
  nextPlace,
  planCompaction,
  roomFor,
  summaryInput,
  summaryInstructions,
  withoutReplaced,
} from './compaction.ts';
import { contextOf, fixedTokens, isOfWorker, observedContextLimit } from './context.ts';
import { tokensOfText } from './context-size.ts';
import { failed, refused, type TurnEvent, type TurnPorts, type TurnState } from './turn.ts';

/**
 * - `due`: if the next model call would be too long
 * - `refused`: a model refused the call as too long
 * - `requested`: all messages so far
 */
export type CompactionCause = 'due' | 'refused' | 'requested';

/** A model that reads less can't write a summary. */
const MIN_PART_TOKENS = 200;

/** `over`: the turn has ended, which was yielded. */
export async function* compact(
  state: TurnState,
  step: number,
  cause: CompactionCause,
  ports: TurnPorts,
  signal: AbortSignal,
): AsyncGenerator<TurnEvent, 'done' | 'nothing' | 'over'> {
  const { tokens, maxTokens, estimatedTokens } = contextOf(state);
  const isDue = tokens >= maxTokens || estimatedTokens >= CONTEXT_MAX_TOKENS;
  // One that a crash interrupted is continued: the parts before it may have made the call short enough.
  if (cause === 'due' && !isDue && !pendingIn(state, step)) return 'nothing';
  const learned =
    cause === 'refused' ? Math.floor(Math.min(maxTokens, estimatedTokens) / 2) : observedContextLimit(state);
  // If a provider counts more tokens than were estimated, fewer messages fit.
  const scale = Math.min(1, estimatedTokens / tokens);
  const room = roomIn(state, Math.min(maxTokens, learned ?? maxTokens) * scale);
  let partTokens = Math.min(room, writerTokens(state));

  const plan = (everything: boolean) => {
    const end = nextPlace(state.transcript, state.compaction, state.turn);
    const from = state.compaction?.from ?? { turn: 0, position: 0 };
    return planCompaction(state.transcript, { from, end, room, partTokens, everything });
  };
  const planned = () => {
    const parts = plan(cause === 'requested');
    // If a call with the newest messages alone is too long, only these can become shorter.
    return parts.length === 0 && cause === 'refused' ? plan(true) : parts;
  };

  let isDone = false;
  for (let parts = planned(); parts[0]; ) {
    const part = writersOf(state).length > 0 ? parts[0] : merged(parts);
    const outcome = yield* summarize(state, step, part, { room, partTokens, learned }, ports, signal);
    if (outcome === 'over') return 'over';
    if (outcome === 'done') {
      isDone = true;
      parts = part === parts[0] ? parts.slice(1) : [];
      continue;
    }
    partTokens = Math.floor(partTokens / 2);
    if (partTokens < MIN_PART_TOKENS) {
      yield failed(outcome.tooLong);
      return 'over';
    }
    parts = planned();
  }
  const unneeded = pendingIn(state, step);
  if (unneeded) {
    unneeded.status = 'cancelled';
    yield { type: 'compactionFailed', operation: unneeded };
  }
  return isDone ? 'done' : 'nothing';
}

function roomIn(state: Pick<TurnState, 'definition' | 'tools' | 'unavailable'>, tokens: number): number {
  return roomFor(tokens, isOfWorker(state) ? 0 : fixedTokens(state));
}

function pendingIn({ operations }: TurnState, step: number) {
  return operations.find((one) => one.kind === 'compaction' && one.step === step && one.status === 'pending');
}

interface Sizes {
  room: number;
  partTokens: number;
  learned: number | null;
}

async function* summarize(
  state: TurnState,
  step: number,
  part: CompactionPart,
  { room, partTokens, learned }: Sizes,
  ports: TurnPorts,
  signal: AbortSignal,
): AsyncGenerator<TurnEvent, 'done' | 'over' | TooLong> {
  const models = writersOf(state);
  const before = contextOf(state);
  let operation = pendingIn(state, step);
  if (!operation) {
    operation = newCompaction(state.turn, step, state.operations);
    state.operations.push(operation);
    yield { type: 'compactionStarted', operation };
  }

  let summary = '';
  let written: Extract<TurnEvent, { type: 'compacted' }>['written'] = null;
  if (models.length > 0) {
    const refusal = await ports.refusal(operation, models);
    if (refusal) {
      yield refused(operation, refusal);
      return 'over';
    }
    const callOf = (config: Model) => summaryCall(state, config, part, room, partTokens);
    const response = yield* askModels(state, { operation, models, ask: ports.askModel, callOf }, ports, signal);
    if (!response) return 'over';
    if ('tooLong' in response) {
      Object.assign(operation, { status: 'failed', error: response.tooLong.message });
      yield { type: 'compactionFailed', operation };
      return response;
    }
    // A model that refuses, or says nothing, has left them out.
    summary = response.finish.reason === 'refusal' ? '' : boundedSummary(storableText(response.text), room);
    written = { model: response.model, usage: response.finish.usage };
  }
  Object.assign(operation, { status: 'succeeded', model: written && modelName(written.model) });
  state.compaction = {
    from: part.from,
    summary,
    maxTokens: learned,
    maxTokensOf: learned === null ? null : modelName(state.models[0]!),
  };
  state.transcript = withoutReplaced(state.transcript, part.from);
  state.reportedTokens = null;
  yield {
    type: 'compacted',
    operation,
    compaction: state.compaction,
    tokensBefore: before.tokens,
    tokensAfter: contextOf(state).tokens,
    written,
  };
  return 'done';
}

type WriterState = Pick<
  TurnState,
  'organizationId' | 'sessionId' | 'environment' | 'definition' | 'models' | 'compaction' | 'modelCalls'
>;

function summaryCall(
  state: WriterState,
  config: Model,
  part: CompactionPart,
  room: number,
  partTokens: number,
): ModelCall {
  const { organizationId, sessionId, environment, definition, compaction, modelCalls } = state;
  const text = summaryInput(part.entries, compaction?.summary ?? '', Math.min(room, partTokens));
  return {
    organizationId,
    sessionId,
    environment,
    config,
    purpose: 'summary',
    instructions: summaryInstructions(room),
    tools: [],
    limits: definition.limits,
    outputSchema: null,
    transcript: [{ role: 'user', content: [{ type: 'text', text }] }],
    inputTokens: tokensOfText(text),
    callsBefore: modelCalls,
  };
}

/** A provider that counts more tokens than were estimated leaves less room; more than this many times as many is unlikely. */
const MOST_UNDERESTIMATED = 3;

/**
 * The call that wrote a summary, built again. `state` is the one before; `learned`: what the model takes, if it had refused more.
 * `isSure`: how much room there was, which is not stored, makes no difference to it. Null: no such model writes summaries.
 */
export function repeatedSummaryCall(
  state: WriterState & Parameters<typeof contextOf>[0],
  part: CompactionPart,
  learned: number | null,
  writer: string,
): { call: ModelCall; isSure: boolean } | null {
  const config = writersOf(state).find((one) => modelName(one) === writer);
  if (!config) return null;
  const { maxTokens } = contextOf(state);
  const callIn = (tokens: number) => {
    const room = roomIn(state, Math.min(tokens, learned ?? tokens));
    return summaryCall(state, config, part, room, Math.min(room, writerTokens(state)));
  };
  const call = callIn(maxTokens);
  return { call, isSure: isSameJson(call, callIn(maxTokens / MOST_UNDERESTIMATED)) };
}

function merged(parts: readonly CompactionPart[]): CompactionPart {
  return { entries: parts.flatMap(({ entries }) => entries), from: parts.at(-1)!.from };
}

/** The models that write summaries, in the order in which they are called. */
function writersOf({ definition, models }: Pick<TurnState, 'definition' | 'models'>): readonly Model[] {
  const { compaction } = definition.model;
  const own = models.filter(({ provider }) => provider !== 'worker');
  return compaction ? [compaction, ...own] : own;
}

/** What the first of them may get. */
function writerTokens(state: Pick<TurnState, 'definition'>): number {
  const { compaction } = state.definition.model;
  if (!compaction) return Number.POSITIVE_INFINITY;
  const { maxOutputTokens } = state.definition.limits;
  return maxTokensOf({ compactAtTokens: null, maxOutputTokens }, modelFacts(compaction).contextTokens);
}
