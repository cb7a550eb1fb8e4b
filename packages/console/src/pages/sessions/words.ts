// What states of a Session mean, for people.
import type { Session, SessionTurn } from '@signalbox/client';
import { counted } from '../../words.ts';

export type StopReason = NonNullable<SessionTurn['stopReason']>;

/** Why a turn ended, where that is not simply that the model had answered. */
export const stopWords: Record<StopReason, string> = {
  endTurn: 'The model answered.',
  maxOutputTokens: 'The turn ended: the model’s answer was cut off at the token limit.',
  maxSteps: 'The turn ended: it reached the agent’s limit of steps.',
  budgetReached: 'The turn ended: the session’s budget is spent.',
  refusal: 'The turn ended: the model or its provider refused to answer.',
  interrupted: 'The turn was interrupted.',
  timedOut: 'The turn was stopped: it reached its time limit.',
  error: 'The turn failed.',
};

export function waitingWords({ waitingFor }: Session): string {
  if (!waitingFor) return '';
  const { operationIds, toolCallIds, sessionIds } = waitingFor;
  const parts = [
    operationIds.length > 0 && counted(operationIds.length, 'approval'),
    toolCallIds.length > 0 && counted(toolCallIds.length, 'result of a tool', 'results of tools'),
    sessionIds.length > 0 && counted(sessionIds.length, 'child Session'),
  ].filter((part) => part !== false);
  return `for ${parts.join(' and ')}`;
}

const dollars = new Intl.NumberFormat('en', {
  style: 'currency',
  currency: 'USD',
  minimumFractionDigits: 2,
  maximumFractionDigits: 6,
});

/** `$0.0123`; a cost that nobody knows has no price configured. */
export function costWords(costUsd: number | null): string {
  return costUsd === null ? 'not known' : dollars.format(costUsd);
}

export function number(value: number): string {
  return value.toLocaleString('en');
}
