// What a session is doing, in words.
import type { Session } from '@signalbox/client';
import { counted, shown } from './text.ts';

export function stateOf({ status, waitingFor, stopReason }: Session): string {
  if (waitingFor) {
    const { type, operationIds, toolCallIds, sessionIds, retryAt, error } = waitingFor;
    if (error?.code === 'model_limit_reached') return `waiting: ${shown(error.message)}; about ${retryAt}`;
    if (type === 'model')
      return `waiting: model unavailable, retry at ${retryAt}${error ? ` (${shown(error.message)})` : ''}`;
    const parts = [
      operationIds.length > 0 && `${operationIds.length} to approve`,
      toolCallIds.length > 0 && counted(toolCallIds.length, 'tool result'),
      sessionIds.length > 0 && counted(sessionIds.length, 'child session'),
    ];
    return `waiting: ${parts.filter(Boolean).join(', ')}`;
  }
  return status === 'idle' && stopReason && stopReason !== 'endTurn' ? `idle: ${stopReason}` : status;
}
