// The files in the parts of messages.
import type { FilePart, MessagePart } from '@signalbox/contract';

/** The files that a part of a message has: itself, or those in the result of a tool. */
export function filesOf(part: MessagePart): FilePart[] {
  if (part.type === 'file') return [part];
  if (part.type !== 'tool_result') return [];
  return [part.output].flat().filter(isFilePart);
}

function isFilePart(value: unknown): value is FilePart {
  if (typeof value !== 'object' || value === null) return false;
  const { type, fileId, mediaType, bytes } = value as Record<string, unknown>;
  return type === 'file' && typeof fileId === 'string' && typeof mediaType === 'string' && typeof bytes === 'number';
}
