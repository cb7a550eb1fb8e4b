/**
 * Verifies the event log: it is one complete chain, and each record is what was recorded.
 *
 * `hash` is SHA-256 over the bytes of `previousHash` and the canonical JSON of the record without both. Each record is checked
 * against its own hash, and linked to the previous one by sequence and hash. The first problem is reported; the records after
 * it can't be judged. Hashing uses Web Crypto, which every runtime has.
 */
import { canonicalJson } from './canonical.ts';
import type { Event } from './types.generated.ts';

/** A record that was verified: its number and its hash. */
export interface EventCheckpoint {
  sequence: number;
  /** 64 lowercase hexadecimal digits. */
  hash: string;
}

/**
 * What is wrong with a record.
 *
 * - `not_a_record`: not a JSON object with the fields of a record.
 * - `changed`: not what was recorded; its hash belongs to other content.
 * - `records_missing`: records are missing before it.
 * - `out_of_order`: its number was already used.
 * - `not_linked`: its `previousHash` is not the hash of the previous record, so that one was changed along with its hash.
 * - `other_history`: it has the number of the checkpoint but another hash, or follows the checkpoint but names another hash:
 *   the log was rewritten.
 * - `cut_short`: the log ends before the checkpoint.
 */
export type EventChainProblem =
  | 'not_a_record'
  | 'changed'
  | 'records_missing'
  | 'out_of_order'
  | 'not_linked'
  | 'other_history'
  | 'cut_short';

/** The result of a verification. */
export type EventVerification =
  | {
      ok: true;
      /** How many records were read. */
      count: number;
      /** The first and the last record; null if there are none. Keep the last as the checkpoint of the next verification. */
      first: EventCheckpoint | null;
      last: EventCheckpoint | null;
    }
  | {
      ok: false;
      /** How many records were valid before the first problem. */
      count: number;
      /** The sequence of the record in question, as it states it; null for `cut_short`. */
      sequence: number | null;
      eventId: string | null;
      problem: EventChainProblem;
      /** The problem in words. */
      detail: string;
    };

export interface VerifyEventsOptions {
  /** The `last` of an earlier verification: the log must still have this record, unless retention has deleted it. */
  checkpoint?: EventCheckpoint | undefined;
}

/** The `previousHash` of an organization's first record. */
const firstHash = '0'.repeat(64);
/** How many are hashed together: one at a time would mostly wait. Also bounds memory. */
const batchSize = 256;
const encoder = new TextEncoder();

/**
 * Verifies records in the order of the chain, oldest first, starting anywhere: the whole log, or an export without filters.
 *
 * @param records as returned by a list or an export, or as lines of JSON
 * @throws TypeError if the checkpoint is invalid; and any error of reading the records
 */
export async function verifyEvents(
  records: AsyncIterable<unknown> | Iterable<unknown>,
  { checkpoint }: VerifyEventsOptions = {},
): Promise<EventVerification> {
  if (checkpoint && !(Number.isSafeInteger(checkpoint.sequence) && /^[0-9a-f]{64}$/.test(checkpoint.hash))) {
    throw new TypeError(
      'checkpoint must be { sequence, hash } of a record, the hash in 64 lowercase hexadecimal digits',
    );
  }
  const chain = new Chain(checkpoint);
  let batch: unknown[] = [];
  for await (const record of records) {
    batch.push(record);
    if (batch.length < batchSize) continue;
    const broken = await chain.add(batch);
    if (broken) return broken;
    batch = [];
  }
  return (await chain.add(batch)) ?? chain.end();
}

type Broken = Extract<EventVerification, { ok: false }>;

class Chain {
  readonly #checkpoint: EventCheckpoint | undefined;
  #count = 0;
  #first: EventCheckpoint | null = null;
  #last: EventCheckpoint | null = null;

  constructor(checkpoint: EventCheckpoint | undefined) {
    this.#checkpoint = checkpoint;
  }

  async add(records: readonly unknown[]): Promise<Broken | undefined> {
    const events = records.map(eventIn);
    const hashes = await Promise.all(events.map((event) => event && hashOf(event)));
    for (const [index, event] of events.entries()) {
      const broken = this.#addOne(event, hashes[index]);
      if (broken) return broken;
    }
    return undefined;
  }

  end(): EventVerification {
    const { sequence } = this.#checkpoint ?? { sequence: 0 };
    const reached = this.#last?.sequence ?? 0;
    if (reached < sequence) {
      const detail = `The log ends with record ${reached}, before record ${sequence} of the checkpoint.`;
      return this.#broken(undefined, 'cut_short', detail);
    }
    return { ok: true, count: this.#count, first: this.#first, last: this.#last };
  }

  #addOne(event: Event | undefined, ownHash: string | undefined): Broken | undefined {
    if (!event) return this.#broken(event, 'not_a_record', 'This is not an event log record.');
    const { sequence, hash, previousHash } = event;
    const before = this.#last;
    if (before && sequence <= before.sequence) {
      return this.#broken(
        event,
        'out_of_order',
        `Record ${sequence} follows record ${before.sequence}: it is out of order.`,
      );
    }
    if (before && sequence > before.sequence + 1) {
      const gap = sequence === before.sequence + 2 ? sequence - 1 : `${before.sequence + 1} to ${sequence - 1}`;
      return this.#broken(event, 'records_missing', `Before record ${sequence}, records are missing: ${gap}.`);
    }
    if (hash !== ownHash) {
      return this.#broken(event, 'changed', `Record ${sequence} was changed: its hash does not match its content.`);
    }
    if (previousHash !== (before?.hash ?? (sequence === 1 ? firstHash : previousHash))) {
      const detail = before
        ? `Record ${sequence} is not linked to record ${before.sequence}: one of the two was changed.`
        : 'The first record of an organization must have zeros as its previousHash.';
      return this.#broken(event, 'not_linked', detail);
    }
    const known = this.#checkpoint;
    if (
      known &&
      ((sequence === known.sequence && hash !== known.hash) ||
        (sequence === known.sequence + 1 && previousHash !== known.hash))
    ) {
      return this.#broken(event, 'other_history', `The log does not match the checkpoint at record ${known.sequence}.`);
    }
    this.#last = { sequence, hash };
    this.#first ??= this.#last;
    this.#count += 1;
    return undefined;
  }

  #broken(event: Event | undefined, problem: EventChainProblem, detail: string): Broken {
    const { sequence = null, eventId = null } = event ?? {};
    return { ok: false, count: this.#count, sequence, eventId, problem, detail };
  }
}

/** The record, if it has the fields of the chain; the rest is covered by its hash. */
function eventIn(record: unknown): Event | undefined {
  try {
    const event = (typeof record === 'string' ? JSON.parse(record) : record) as Partial<Event> | null;
    const isRecord =
      Number.isSafeInteger(event?.sequence) &&
      (event?.sequence ?? 0) > 0 &&
      typeof event?.eventId === 'string' &&
      typeof event.hash === 'string' &&
      /^[0-9a-f]{64}$/.test(event.previousHash ?? '');
    return isRecord ? (event as Event) : undefined;
  } catch {
    return undefined;
  }
}

async function hashOf({ previousHash, hash: _, ...record }: Event): Promise<string> {
  const text = encoder.encode(canonicalJson(record));
  const bytes = new Uint8Array(32 + text.length);
  for (let at = 0; at < 32; at += 1) bytes[at] = Number.parseInt(previousHash.slice(2 * at, 2 * at + 2), 16);
  bytes.set(text, 32);
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
