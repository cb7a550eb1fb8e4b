// What a response shows in the journal while it is written.
import type { Item, NewChunk } from '../journal/segment.ts';
import { formatId } from '../lib/ids.ts';
import { messageIdOf, type Operation, toolCallIdOf } from '../session-rows/operations.ts';
import type { EarlyPart } from '../turn/early-parts.ts';
import type { TurnEvent } from '../turn/turn.ts';

/** The chunks with which a response begins. `model`: `provider/model`. */
export function startChunks(modelCall: Operation, model: string): NewChunk[] {
  const { step } = modelCall;
  return [
    { type: 'step.started', step, model },
    { type: 'message.started', messageId: formatId('msg', messageIdOf(modelCall)), step },
  ];
}

export function responseItems(event: Extract<TurnEvent, { type: 'responding' | 'text' }> | EarlyPart): Item[] {
  switch (event.type) {
    case 'responding':
      return startChunks(event.modelCall, event.model);
    case 'text':
      return [event.delta];
    case 'reasoning':
      return [{ type: 'reasoning.chunk', delta: event.delta }];
    case 'toolInput':
      return [{ type: 'tool.input.chunk', toolCallId: toolCallIdOf(event), toolName: event.name, delta: event.delta }];
  }
}
