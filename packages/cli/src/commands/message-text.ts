import type { MessagePart } from '@signalbox/client';
import { shown, shownLines } from '../text.ts';

/** A part of a message in a terminal. */
export function partText(part: MessagePart): string {
  switch (part.type) {
    case 'text':
      return shownLines(part.text);
    case 'tool_call':
      return `-> ${shown(part.tool)} ${shown(JSON.stringify(part.input))}`;
    case 'tool_result':
      return `<- ${part.error === undefined ? shown(JSON.stringify(part.output) ?? '') : `error: ${shown(part.error)}`}`;
    case 'file':
      return `+  ${part.fileId}`;
    default:
      // A part of a newer service.
      return shown(JSON.stringify(part));
  }
}
