// The transcript: the messages to and from the model, in the order of (turn, position).
import type { Message, MessagePart } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import { formatId } from '../lib/ids.ts';
import { jsonOfList, withShortOutput } from '../lib/json/json-text.ts';

export interface TranscriptEntry {
  turn: number;
  /** 0: the user's message; then, for each step, the model's response and the results of its tool calls. */
  position: number;
  messageId: string;
  role: Message['role'];
  content: MessagePart[];
  /** For a response: what its provider expects back with the next call. */
  providerData?: unknown;
  /** Whether it is a response that does not match `outputSchema`, or the service's message about one. Not stored. */
  rejected?: boolean | null;
  createdAt: Date;
}

export function insertEntry(owner: { organizationId: string; sessionId: string }, entry: TranscriptEntry): Sql {
  return sql`
    insert into messages (organization_id, session_id, turn, position, message_id, role, content, provider_data,
      created_at)
    values (${owner.organizationId}, ${owner.sessionId}, ${entry.turn}, ${entry.position}, ${entry.messageId},
      ${entry.role}, ${jsonOfList(entry.content)},
      ${entry.providerData === undefined || entry.providerData === null ? null : JSON.stringify(entry.providerData)}, ${entry.createdAt})`;
}

/** The parts of a message as the database has it. Messages are parsed one by one: results of tools may take much memory as values. */
export function contentOf(json: string): MessagePart[] {
  return (JSON.parse(json) as MessagePart[]).map(withShortOutput);
}

export function viewEntry(entry: Omit<TranscriptEntry, 'turn' | 'position'> & { turn: number | null }): Message {
  return {
    messageId: formatId('msg', entry.messageId),
    role: entry.role,
    turn: entry.turn,
    content: entry.content,
    ...(entry.rejected && { rejected: true }),
    createdAt: entry.createdAt.toISOString(),
  };
}
