// What a search finds of a session: the text of its messages, the input of its tool calls, its end user and its metadata. Not the
// results of tools: they are long, and people search for what was said.
import type { MessagePart, Session } from '@signalbox/contract';
import { addWords } from './words.ts';

// A row of a list, on a wide screen.
const PREVIEW_CHARACTERS = 140;

export function addWordsOfParts(words: Set<string>, parts: readonly MessagePart[]): void {
  for (const part of parts) {
    if (part.type === 'text') addWords(words, part.text);
    else if (part.type === 'file' && part.filename) addWords(words, part.filename);
    else if (part.type === 'tool_call') {
      addWords(words, part.tool);
      addWordsOfJson(words, part.input);
    }
  }
}

function addWordsOfJson(words: Set<string>, value: unknown): void {
  if (typeof value === 'string' || typeof value === 'number') addWords(words, String(value));
  else if (typeof value === 'object' && value !== null) {
    for (const inner of Object.values(value)) addWordsOfJson(words, inner);
  }
}

export function addWordsOfSession(
  words: Set<string>,
  {
    endUserId,
    endUserName,
    metadata,
  }: { endUserId: string | null; endUserName: string | null; metadata: Session['metadata'] },
): void {
  addWords(words, endUserId ?? '');
  addWords(words, endUserName ?? '');
  addWordsOfJson(words, metadata);
}

/** The first words of a message, on one line. */
export function previewOf(parts: readonly MessagePart[]): string | null {
  let text = '';
  for (const part of parts) {
    if (part.type === 'text') text += ` ${part.text.slice(0, 1_000)}`;
    else if (part.type === 'file') text += ` ${part.filename ?? ''}`;
    if (text.length > 1_000) break;
  }
  const line = text.replaceAll(/\s+/g, ' ').trim().toWellFormed();
  if (line === '') return null;
  const characters = [...line];
  return characters.length <= PREVIEW_CHARACTERS ? line : `${characters.slice(0, PREVIEW_CHARACTERS - 1).join('')}…`;
}
