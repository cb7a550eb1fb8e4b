import type { MessagePart, Source } from '@signalbox/client';
import { shown, shownLines } from '../text.ts';

/** A part of a message in a terminal. */
export function partText(part: MessagePart): string {
  switch (part.type) {
    case 'text':
      return [shownLines(part.text), ...(part.sources ?? []).map((source) => `   ${sourceText(source)}`)].join('\n');
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

/** The title of a source and its address, as far as it has them. */
export function sourceText({ url, title }: Source): string {
  return [title, url === title ? undefined : url].flatMap((one) => (one === undefined ? [] : shown(one))).join('  ');
}
