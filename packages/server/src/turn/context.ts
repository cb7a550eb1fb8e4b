// What the next model call gets of a turn's state, how long it is, and how long it may be.
import { modelFacts } from '@signalbox/contract';
import type { ModelEntry } from '../models/model/model.ts';
import { modelName } from '../usage/prices.ts';
import { CONTEXT_MAX_TOKENS, maxTokensOf, modelView, roomFor } from './compaction.ts';
import { tokensOfAll, tokensOfText } from './context-size.ts';
import type { TurnState } from './turn.ts';

/** What the next model call gets. */
export interface Context {
  view: ModelEntry[];
  /** How long the call is, and may be. */
  tokens: number;
  maxTokens: number;
  /** How long it is by the estimate alone. */
  estimatedTokens: number;
}

type ContextState = Pick<
  TurnState,
  'transcript' | 'compaction' | 'reportedTokens' | 'definition' | 'models' | 'tools' | 'unavailable'
>;

export function contextOf(state: ContextState): Context {
  const { transcript, compaction, reportedTokens } = state;
  const maxTokens = Math.min(allowedTokens(state), observedContextLimit(state) ?? Number.POSITIVE_INFINITY);
  const fixed = fixedTokens(state);
  // A worker's program shortens what its own model gets.
  const view = modelView(
    transcript,
    compaction,
    isOfWorker(state) ? Number.POSITIVE_INFINITY : roomFor(maxTokens, fixed),
  );
  const estimatedTokens = fixed + tokensOfAll(view);
  const sinceResponse = view.slice(view.findLastIndex(({ role }) => role === 'assistant') + 1);
  const tokens = reportedTokens === null ? estimatedTokens : reportedTokens + tokensOfAll(sinceResponse);
  return { view, tokens, maxTokens, estimatedTokens };
}

export function isOfWorker({ definition }: Pick<TurnState, 'definition'>): boolean {
  return definition.model.provider === 'worker';
}

function allowedTokens(state: ContextState): number {
  const { limits } = state.definition;
  if (isOfWorker(state)) return Math.min(limits.compactAtTokens ?? Number.POSITIVE_INFINITY, CONTEXT_MAX_TOKENS);
  return maxTokensOf(limits, modelFacts(state.models[0]!).contextTokens);
}

/** What the model takes, if it refused more. */
export function observedContextLimit({ compaction, models }: Pick<TurnState, 'compaction' | 'models'>): number | null {
  return compaction?.maxTokensOf === modelName(models[0]!) ? compaction.maxTokens : null;
}

/** Tools are listed once a turn, and can be long. */
const tokensOfTools = new WeakMap<object, number>();

/** The tokens of what is in every call besides the messages. */
export function fixedTokens({
  definition,
  tools,
  unavailable,
}: Pick<TurnState, 'definition' | 'tools' | 'unavailable'>): number {
  let ofTools = tokensOfTools.get(tools);
  if (ofTools === undefined) {
    const told = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
    ofTools = tools.length === 0 ? 0 : tokensOfText(JSON.stringify(told));
    tokensOfTools.set(tools, ofTools);
  }
  const schema = definition.outputSchema === null ? '' : JSON.stringify(definition.outputSchema);
  return ofTools + tokensOfText([definition.instructions, ...unavailable, schema].join('\n'));
}
