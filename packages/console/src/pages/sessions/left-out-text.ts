/** What a retry could leave out, in words: a file by its name, a message by its beginning, a tool by its name. */
import type { RetryWithout } from '@signalbox/client';
import type { Entry } from './conversation.ts';

export interface LeftOutChoice {
  readonly name: string;
  readonly without: RetryWithout;
}

const WORDS_MAX_CHARACTERS = 40;

/** Each by itself. `entries`: the messages that are shown, where names are found. */
export function leftOutChoices(
  { fileIds = [], messageIds = [], tools = [] }: RetryWithout,
  entries: readonly Entry[],
): LeftOutChoice[] {
  const files = entries.flatMap((entry) => (entry.kind === 'user' || entry.kind === 'call' ? entry.files : []));
  const fileName = (id: string) => files.find(({ fileId }) => fileId === id)?.filename ?? id;
  return [
    ...fileIds.map((id) => ({ name: fileName(id), without: { fileIds: [id] } })),
    ...messageIds.map((id) => ({ name: messageName(id, entries), without: { messageIds: [id] } })),
    ...tools.map((tool) => ({ name: `the tool ${tool}`, without: { tools: [tool] } })),
  ];
}

function messageName(id: string, entries: readonly Entry[]): string {
  const said = entries.find((entry) => entry.kind === 'user' && entry.key === id);
  const text = said?.kind === 'user' ? said.text.trim().replace(/\s+/g, ' ') : '';
  if (text === '') return `the message ${id}`;
  return text.length <= WORDS_MAX_CHARACTERS ? `“${text}”` : `“${text.slice(0, WORDS_MAX_CHARACTERS).toWellFormed()}…”`;
}
