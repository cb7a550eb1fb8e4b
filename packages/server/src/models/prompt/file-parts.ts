// The files in the parts of messages.
import { type FilePart, type MessagePart, maxFileBytes } from '@signalbox/contract';
import { parseId } from '../../lib/ids.ts';
import { JsonText } from '../../lib/json/json-text.ts';

/** The files that a part of a message has: itself, or those in the result of a tool. */
export function filesOf(part: MessagePart): FilePart[] {
  if (part.type === 'file') return [part];
  if (part.type !== 'tool_result') return [];
  const { output } = part;
  if (!(output instanceof JsonText)) return [output].flat().filter(isFilePart);
  // Most have none, and are not parsed for it.
  return output.text.includes('"file_') ? [output.toJSON()].flat().filter(isFilePart) : [];
}

/** A result comes from the server or client of a tool: what looks like a file can have any id and any size. Sizes are added up. */
function isFilePart(value: unknown): value is FilePart {
  if (typeof value !== 'object' || value === null) return false;
  const { type, fileId, mediaType, bytes, filename } = value as Record<string, unknown>;
  return (
    type === 'file' &&
    typeof fileId === 'string' &&
    parseId('file', fileId) !== undefined &&
    typeof mediaType === 'string' &&
    Number.isInteger(bytes) &&
    (bytes as number) > 0 &&
    (bytes as number) <= maxFileBytes &&
    (filename === undefined || typeof filename === 'string')
  );
}
