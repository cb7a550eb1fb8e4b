// Records of the event log as the search reads them: in portions whose sessions are read and written together.
import type { Event } from '@signalbox/contract';
import { uuidOf } from '../../lib/ids.ts';

/** How many sessions one statement reads, and one transaction writes. */
export const SESSIONS = 20;

/** The records after which a session may have more to find. */
const changes: ReadonlySet<string> = new Set<Event['type']>([
  'session.created',
  'session.forked',
  'session.updated',
  'session.waiting',
  'session.idle',
  'session.completed',
  'session.failed',
  'session.cancelled',
]);

export interface LogRecord {
  sequence: number;
  type: string;
  sessionId: string | null;
}

/** Records that are handled together: of so few sessions that their words fit into memory, and their transaction is short. */
export interface Portion {
  /** The number of the last record. */
  sequence: number;
  ids: Set<string>;
  /** Sessions whose words are collected anew, because some may be gone. */
  replaced: Set<string>;
}

export function* portionsOf(records: readonly LogRecord[]): Generator<Portion> {
  let portion: Portion | undefined;
  for (const { sequence, type, sessionId } of records) {
    const id = sessionId !== null && changes.has(type) ? uuidOf('ses', sessionId) : undefined;
    if (portion && id !== undefined && !portion.ids.has(id) && portion.ids.size === SESSIONS) {
      yield portion;
      portion = undefined;
    }
    portion ??= { sequence, ids: new Set(), replaced: new Set() };
    portion.sequence = sequence;
    if (id === undefined) continue;
    portion.ids.add(id);
    if (type === 'session.updated') portion.replaced.add(id);
  }
  if (portion) yield portion;
}
