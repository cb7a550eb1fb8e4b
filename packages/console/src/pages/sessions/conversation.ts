/**
 * What a user reads of a session, in order: messages and tool calls.
 *
 * It is built from two sources that overlap. The **transcript** has whole messages, including the user's, but a step only once it
 * is stored. The **journal** has every chunk as it is streamed, but no user messages. A finished turn is therefore read from the
 * transcript, and the current turn from its chunks, with its first message from the transcript (follow.ts decides which).
 * Entries have the same keys from either source, so nothing on the page moves when a turn ends.
 */
import type { FilePart, Message, Source } from '@signalbox/client';
import { type AssistantPart, partsOf, type ToolPart } from '@signalbox/client/conversation';

/** What the model wrote. Its reasoning is only in the journal, and shown as long as the turn is read from there. */
interface Written<Kind> {
  kind: Kind;
  key: string;
  turn: number;
  text: string;
  /** What the text cites, once it is complete. */
  sources?: readonly Source[];
}

export interface UserEntry {
  kind: 'user';
  key: string;
  /** null: its turn has not started. */
  turn: number | null;
  text: string;
  files: readonly FilePart[];
  createdAt: string;
  /** Not written by a user: the service asked the model to repeat its output, because of `outputSchema`. */
  isRepair: boolean;
}

export interface CallEntry extends Omit<ToolPart, 'type' | 'id'> {
  kind: 'call';
  /** The id of the call. */
  key: string;
  turn: number;
}

export type TextEntry = Written<'text'> | Written<'reasoning'>;

export type Entry = UserEntry | TextEntry | CallEntry;

/** The id of a call's approval: the same operation with the other prefix. */
export function operationIdOf({ key }: CallEntry): string {
  return key.replace(/^call_/, 'op_');
}

const known = new WeakMap<AssistantPart, TextEntry | CallEntry>();

/** The entry of a part; the same object for the same part. `key`: unless it is a call, which has its own. */
export function entryOf(part: AssistantPart, turn: number, key = `${turn}:${part.id}`): TextEntry | CallEntry {
  const before = known.get(part);
  if (before) return before;
  let entry: TextEntry | CallEntry;
  if (part.type === 'tool') {
    const { type: _, id, ...call } = part;
    entry = { kind: 'call', key: id, turn, ...call };
  } else {
    const sources = part.type === 'text' && part.sources ? { sources: part.sources } : {};
    entry = { kind: part.type, key, turn, text: part.text, ...sources } as TextEntry;
  }
  known.set(part, entry);
  return entry;
}

/** The entries of these messages: texts, and calls with their results. */
export function entriesOf(messages: readonly Message[]): Entry[] {
  const entries: Entry[] = [];
  const texts = new Map<number, number>();
  let last = 0;
  for (let from = 0; from < messages.length; ) {
    const message = messages[from]!;
    const turn = message.turn ?? 0;
    if (message.role === 'user') {
      entries.push({ ...userEntry(message), isRepair: turn === last });
      last = turn;
      from += 1;
      continue;
    }
    let to = from + 1;
    while (to < messages.length && messages[to]!.role !== 'user' && messages[to]!.turn === message.turn) to += 1;
    for (const part of partsOf(messages.slice(from, to))) {
      // A turn has several responses with text if one was rejected.
      const count = texts.get(turn) ?? 0;
      if (part.type === 'text') texts.set(turn, count + 1);
      entries.push(entryOf(part, turn, `${turn}:text_${count}`));
    }
    from = to;
  }
  return entries;
}

export function userEntry({ messageId, turn, content, createdAt }: Message): UserEntry {
  const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n\n');
  const files = content.filter((part) => part.type === 'file');
  return { kind: 'user', key: messageId, turn, text, files, createdAt, isRepair: false };
}
