// Verifies the chain of every event log where it is stored, for a database that was copied.
import type { PendingEvent } from './record.ts';
import { hashOf, recordOf } from './sequencer.ts';

export interface ChainReport {
  organizationId: string;
  records: number;
  /** Why the chain does not hold; undefined if it does. */
  problem?: string;
}

interface Ask {
  query<Row>(text: string, values?: unknown[]): Promise<Row[]>;
}

interface Head {
  organizationId: string;
  sequence: string;
  hash: Buffer;
  anchorSequence: string;
  anchorHash: Buffer;
}

interface Row {
  eventId: string;
  sequence: string;
  body: PendingEvent;
  occurredAt: Date;
  hash: Buffer;
}

const WINDOW = 1_000;

/** One after the other, a thousand records at a time. */
export async function verifyChains(connection: Ask): Promise<ChainReport[]> {
  const heads = await connection.query<Head>(`
    select organization_id as "organizationId", sequence, hash, anchor_sequence as "anchorSequence",
      anchor_hash as "anchorHash"
    from event_heads order by organization_id`);
  const reports: ChainReport[] = [];
  for (const head of heads) reports.push(await verifyChain(connection, head));
  return reports;
}

async function verifyChain(connection: Ask, head: Head): Promise<ChainReport> {
  const { organizationId } = head;
  let sequence = Number(head.anchorSequence);
  let hash = head.anchorHash;
  let records = 0;
  const broken = (problem: string) => ({ organizationId, records, problem });
  for (;;) {
    const rows = await connection.query<Row>(
      `select event_id as "eventId", sequence, body, occurred_at as "occurredAt", hash from events
       where organization_id = $1 and sequence > $2 order by sequence limit $3`,
      [organizationId, sequence, WINDOW],
    );
    for (const row of rows) {
      if (Number(row.sequence) !== sequence + 1) return broken(`record ${sequence + 1} is missing`);
      sequence += 1;
      const own = hashOf(hash, recordOf(row.eventId, sequence, row.occurredAt, row.body));
      if (!own.equals(row.hash)) return broken(`record ${sequence} does not have the hash of its content`);
      hash = own;
      records += 1;
    }
    if (rows.length < WINDOW) break;
  }
  if (sequence !== Number(head.sequence)) return broken(`records after ${sequence} are missing`);
  if (!hash.equals(head.hash)) return broken(`the log does not end with the hash of its last record`);
  return { organizationId, records };
}
