// The states of a session in words.
import type { Session, SessionTurn } from '@signalbox/client';
import { counted } from '../../lib/text-format.ts';

export type StopReason = NonNullable<SessionTurn['stopReason']>;
type ModelCallUsage = NonNullable<SessionTurn['operations'][number]['usage']>;

/** Why a turn ended, unless the model simply finished. */
export const stopReasonText: Record<StopReason, string> = {
  endTurn: 'The model finished its response.',
  maxOutputTokens: 'The turn ended because the model’s response reached the token limit.',
  maxSteps: 'The turn ended because it reached the agent’s step limit.',
  budgetReached: 'The turn ended because the session’s budget is used up.',
  refusal: 'The turn ended because the model or its provider refused to respond.',
  interrupted: 'The turn was interrupted.',
  timedOut: 'The turn was stopped because it reached its time limit.',
  error: 'The turn failed.',
};

export function waitingText({ waitingFor }: Session): string {
  if (!waitingFor) return '';
  if (waitingFor.error?.code === 'model_limit_reached')
    return 'for its turn to call the model, which the environment limits';
  if (waitingFor.type === 'model') return 'for its model, which is unavailable';
  const { operationIds, toolCallIds, sessionIds } = waitingFor;
  const parts = [
    operationIds.length > 0 && counted(operationIds.length, 'approval'),
    toolCallIds.length > 0 && counted(toolCallIds.length, 'tool result'),
    sessionIds.length > 0 && counted(sessionIds.length, 'child session'),
  ].filter((part) => part !== false);
  return `for ${parts.join(' and ')}`;
}

/** `1,200 in (800 cached, 100 written to the cache), 50 out, 2 searches`. */
export function tokensText({
  inputTokens,
  outputTokens,
  cachedTokens,
  cacheWriteTokens = 0,
  webSearches = 0,
}: ModelCallUsage): string {
  const cache = [
    cachedTokens > 0 && `${number(cachedTokens)} cached`,
    cacheWriteTokens > 0 && `${number(cacheWriteTokens)} written to the cache`,
  ].filter((part) => part !== false);
  const input = `${number(inputTokens)} in${cache.length > 0 ? ` (${cache.join(', ')})` : ''}`;
  const searches = webSearches > 0 ? `, ${counted(webSearches, 'search', 'searches')}` : '';
  return `${input}, ${number(outputTokens)} out${searches}`;
}

export function number(value: number): string {
  return value.toLocaleString('en');
}
