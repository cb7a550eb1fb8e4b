// Wake-ups: hints that something changed. They are lossy by design. Every subscriber also polls, and uses a wake-up only as a
// reason to check now.
//
// On this node a wake-up is a function call. To other nodes it goes by NOTIFY, collected for a few milliseconds into one
// statement of its own, after the commit that it announces. A node that has the database to itself sends none. However many hints a
// statement contains, each names its subject, so a node without that session has nothing to check.
import { EventEmitter } from 'node:events';
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import { OVER, onceAborted } from '../lib/aborted.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { HintBatch, type Hints, readPayload, type Topic } from './hints.ts';

export interface Wake {
  /** Notifies this node at once and the other nodes within milliseconds. */
  publish<T extends Topic>(topic: T, hint: Hints[T]): void;
  /**
   * Returns a function that unsubscribes. `listener` must not throw. Without a hint anything may have happened: the connection that
   * listens to other nodes was lost and is back. `here`: the hint was published on this node.
   */
  subscribe<T extends Topic>(topic: T, listener: (hint: Hints[T] | undefined, here: boolean) => void): () => void;
  /**
   * As `subscribe('journal', …)`, for one environment. There can be hundreds of these subscribers, and thousands of commits a
   * second, so a commit calls only the subscribers of its environment.
   */
  subscribeToEnvironment(environment: Environment, listener: (hint: Hints['journal'] | undefined) => void): () => void;
  /** How many hints there were since the start, by topic: from this node, and from others. */
  hintCounts(): { here: ReadonlyMap<string, number>; elsewhere: ReadonlyMap<string, number> };
  close(): Promise<void>;
}

type Environment = Pick<Hints['journal'], 'organizationId' | 'environment'>;

const CHANNEL = 'signalbox_wake';
// Long enough to collect the hints of one flush of the journal, and short compared with a network round trip.
const GATHER_MS = 5;
// PostgreSQL refuses payloads of 8000 bytes.
const MAX_PAYLOAD_BYTES = 7_900;
const RECONNECT_MS = 1_000;

export interface WakeOptions {
  db: Db;
  log: Log;
  clock: Clock;
  /** Whether other nodes use this database. */
  acrossNodes: boolean;
}

export function createWake({ db, log, clock, acrossNodes }: WakeOptions): Wake {
  const local = new EventEmitter();
  local.setMaxListeners(0);
  const stop = new AbortController();
  const origin = process.pid.toString(36) + Math.random().toString(36).slice(2, 8);
  // Plain numbers, because every commit of text is a hint.
  const here = new Map<string, number>();
  const elsewhere = new Map<string, number>();
  let gathered = new HintBatch();
  let sending: Promise<void> | undefined;

  async function send(): Promise<void> {
    // A stop does not wait: what was gathered is sent now.
    await clock.sleep(GATHER_MS, stop.signal).catch(() => {});
    const payloads = gathered.payloads(origin, MAX_PAYLOAD_BYTES);
    gathered = new HintBatch();
    sending = undefined;
    await db
      .query(sql`select pg_notify(${CHANNEL}, p) from unnest(${payloads}::text[]) p`)
      .catch((error: Error) =>
        log.warn({ err: error }, 'sending a wake-up failed; other nodes find the change by polling'),
      );
  }

  /** Returns whether there are subscribers. */
  function emit(topic: string, hint: unknown, isHere: boolean): boolean {
    const isReceived = local.emit(topic, hint, isHere);
    if (topic !== 'journal' || hint === undefined) return isReceived;
    return local.emit(eventOf(hint as Environment), hint, isHere) || isReceived;
  }

  function receive(payload: string): void {
    const { origin: from, hints } = readPayload(payload);
    if (from === origin) return;
    for (const { topic, hint } of hints) {
      // A newer node may have topics that are unknown here.
      if (emit(topic, hint, false)) elsewhere.set(topic, (elsewhere.get(topic) ?? 0) + 1);
    }
  }

  async function listen(): Promise<void> {
    while (!stop.signal.aborted) {
      try {
        const connection = await db.connect();
        const lost = new Promise<void>((resolve) => {
          connection.once('end', () => resolve());
          connection.once('error', () => resolve());
          onceAborted(stop.signal, resolve);
        });
        connection.on('notification', ({ payload }) => payload && receive(payload));
        await connection.query(`listen ${CHANNEL}`);
        // Hints that were sent before are lost.
        for (const topic of local.eventNames()) local.emit(topic, undefined, false);
        await lost;
        await connection.end().catch(() => {});
      } catch (error) {
        log.warn({ err: error }, 'not receiving wake-ups of other nodes; polling continues');
      }
      await clock.sleep(RECONNECT_MS, stop.signal).catch(() => {});
    }
  }

  function on<Hint>(event: string, listener: (hint: Hint | undefined, here: boolean) => void): () => void {
    local.on(event, listener);
    return () => local.off(event, listener);
  }

  const listening = acrossNodes ? listen() : Promise.resolve();
  return {
    publish(topic, hint) {
      here.set(topic, (here.get(topic) ?? 0) + 1);
      emit(topic, hint, true);
      if (!acrossNodes) return;
      gathered.add(topic, hint);
      sending ??= send();
    },
    subscribe: on,
    subscribeToEnvironment: (environment, listener) => on(eventOf(environment), listener),
    hintCounts: () => ({ here, elsewhere }),
    async close() {
      stop.abort(OVER);
      await Promise.all([listening, sending]);
    },
  };
}

function eventOf({ organizationId, environment }: Environment): string {
  return `journal ${organizationId} ${environment}`;
}
