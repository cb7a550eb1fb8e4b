// Wake-ups: hints that something changed. They are lossy by design. Every subscriber also polls, and uses a wake-up only as a
// reason to check now.
//
// On this node a wake-up is a function call. To other nodes it goes by NOTIFY, collected for a few milliseconds into one
// statement of its own, after the commit that it announces. A node that has the database to itself sends none. However many hints a
// statement contains, each names its subject, so a node without that session has nothing to check.
//
// A node listens to the channel of all nodes and to its own, which has the hints of what it follows (followers.ts).
import { EventEmitter } from 'node:events';
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import { OVER, onceAborted } from '../lib/aborted.ts';
import type { Clock } from '../lib/clock.ts';
import { newUuid } from '../lib/ids.ts';
import type { Log } from '../lib/log.ts';
import { environmentKey, type Followed, Followers } from './followers.ts';
import {
  type AnyHint,
  FOLLOW,
  HintBatch,
  type Hints,
  type Message,
  nodeOf,
  originOf,
  readPayload,
  type Topic,
} from './hints.ts';
import { CHANNEL, createOlderNodeSearch } from './older-nodes.ts';

export interface Wake {
  /** Notifies this node at once and the other nodes within milliseconds: of a journal's text those that follow it. */
  publish<T extends Topic>(topic: T, hint: Hints[T]): void;
  /**
   * Returns a function that unsubscribes. `listener` must not throw. Without a hint anything may have happened: the connection that
   * listens to other nodes was lost and is back. `from`: the node that published the hint; undefined: this one.
   */
  subscribe<T extends Topic>(topic: T, listener: Listener<Hints[T]>): () => void;
  /**
   * As `subscribe('journal', …)`, for one environment. There can be hundreds of these subscribers, and thousands of commits a
   * second, so a commit calls only the subscribers of its environment.
   */
  subscribeToEnvironment(environment: Environment, listener: Listener<Hints['journal']>): () => void;
  /**
   * Asks a node for the hints of text of a session, or of an environment's sessions; undefined: each node. Call it for each hint that a
   * subscriber needs, with the node that it is from: the message is sent now and then, and the hints end half a minute after the last.
   */
  follow(followed: Followed, nodeId: string | undefined): void;
  /** How many hints there were since the start, by topic: from this node, and from others. */
  hintCounts(): { here: ReadonlyMap<string, number>; elsewhere: ReadonlyMap<string, number> };
  close(): Promise<void>;
}

type Environment = Pick<Hints['journal'], 'organizationId' | 'environment'>;
type Listener<Hint> = (hint: Hint | undefined, from: string | undefined) => void;

// Long enough to collect the hints of one flush of the journal, and short compared with a network round trip.
const GATHER_MS = 5;
// A node that needs none of them still pays for each notification, far more than for each hint in it. So under load, commits that are
// announced to all nodes wait for this long after the last notification, or go with the next one that doesn't wait.
const PAUSE_MS = 40;
// PostgreSQL refuses payloads of 8000 bytes.
const MAX_PAYLOAD_BYTES = 7_900;
const RECONNECT_MS = 1_000;

export interface WakeOptions {
  db: Db;
  log: Log;
  clock: Clock;
  /** The id that the rows of its sessions have. By default one that no row has. */
  nodeId?: string;
  /** Whether other nodes use this database. */
  acrossNodes: boolean;
}

export function createWake({ db, log, clock, nodeId = newUuid(), acrossNodes }: WakeOptions): Wake {
  const local = new EventEmitter();
  local.setMaxListeners(0);
  const stop = new AbortController();
  const origin = originOf(nodeId);
  const followers = new Followers(clock);
  const isOlderNodeThere = createOlderNodeSearch({ db, clock });
  // Plain numbers, because every commit of text is a hint.
  const here = new Map<string, number>();
  const elsewhere = new Map<string, number>();
  /** By channel. */
  let gathered = new Map<string, HintBatch>();
  let sending: Promise<void> | undefined;
  let sentAt = 0;
  /** Ends the pause. */
  let hurry = new AbortController();

  function sendSoon(channel: string, topic: Message, hint: AnyHint): void {
    const batch = gathered.get(channel) ?? new HintBatch();
    gathered.set(channel, batch);
    batch.add(topic, hint);
    sending ??= send();
    if (channel !== CHANNEL || topic !== 'journal') hurry.abort(OVER);
  }

  async function send(): Promise<void> {
    const pause = sentAt + PAUSE_MS - clock.now().getTime();
    if (pause > 0) await clock.sleep(pause, hurry.signal).catch(() => {});
    // A stop does not wait: what was gathered is sent now.
    await clock.sleep(GATHER_MS, stop.signal).catch(() => {});
    hurry = new AbortController();
    sentAt = clock.now().getTime();
    const messages = [...gathered].flatMap(([channel, batch]) =>
      batch.payloads(origin, MAX_PAYLOAD_BYTES).map((payload) => ({ channel, payload })),
    );
    gathered = new Map();
    sending = undefined;
    const [channels, payloads] = [messages.map(({ channel }) => channel), messages.map(({ payload }) => payload)];
    await db
      .query(sql`select pg_notify(c, p) from unnest(${channels}::text[], ${payloads}::text[]) as m(c, p)`)
      .catch((error: Error) =>
        log.warn({ err: error }, 'sending a wake-up failed; other nodes find the change by polling'),
      );
  }

  /** Undefined: all. */
  function nodesFor(topic: Topic, hint: unknown): readonly string[] | undefined {
    return topic !== 'journal' || isOlderNodeThere() ? undefined : followers.of(hint as Hints['journal']);
  }

  /** Returns whether there are subscribers. */
  function emit(topic: string, hint: unknown, from: string | undefined): boolean {
    const isReceived = local.emit(topic, hint, from);
    if (topic !== 'journal' || hint === undefined) return isReceived;
    return local.emit(eventOf(hint as Environment), hint, from) || isReceived;
  }

  function receive(payload: string): void {
    const { origin: sender, hints } = readPayload(payload);
    if (sender === origin) return;
    const from = nodeOf(sender);
    for (const { topic, hint } of hints) {
      if (topic === FOLLOW) {
        const { organizationId, environment } = hint as Followed;
        for (const sessionId of followers.add(hint as Followed, from))
          sendSoon(channelOf(from), 'journal', { organizationId, environment, sessionId });
      } else if (emit(topic, hint, from)) {
        // A newer node may have topics that are unknown here.
        elsewhere.set(topic, (elsewhere.get(topic) ?? 0) + 1);
      }
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
        await connection.query(`listen ${CHANNEL}; listen ${channelOf(nodeId)}`);
        // Hints that were sent before are lost.
        for (const topic of local.eventNames()) local.emit(topic, undefined, undefined);
        await lost;
        await connection.end().catch(() => {});
      } catch (error) {
        log.warn({ err: error }, 'not receiving wake-ups of other nodes; polling continues');
      }
      await clock.sleep(RECONNECT_MS, stop.signal).catch(() => {});
    }
  }

  function on<Hint>(event: string, listener: Listener<Hint>): () => void {
    local.on(event, listener);
    return () => local.off(event, listener);
  }

  const listening = acrossNodes ? listen() : Promise.resolve();
  return {
    publish(topic, hint) {
      here.set(topic, (here.get(topic) ?? 0) + 1);
      emit(topic, hint, undefined);
      if (!acrossNodes) return;
      const nodes = nodesFor(topic, hint);
      if (nodes) for (const one of nodes) sendSoon(channelOf(one), topic, hint);
      else sendSoon(CHANNEL, topic, hint);
    },
    subscribe: on,
    subscribeToEnvironment: (environment, listener) => on(eventOf(environment), listener),
    follow(followed, writer) {
      if (!acrossNodes || writer === nodeId || !followers.mustAsk(followed, writer ?? CHANNEL)) return;
      sendSoon(writer === undefined ? CHANNEL : channelOf(writer), FOLLOW, followed);
    },
    hintCounts: () => ({ here, elsewhere }),
    async close() {
      stop.abort(OVER);
      hurry.abort(OVER);
      await Promise.all([listening, sending]);
    },
  };
}

/** The channel of one node. */
function channelOf(nodeId: string): string {
  return `${CHANNEL}_${nodeId.replaceAll('-', '')}`;
}

function eventOf(environment: Environment): string {
  return `journal ${environmentKey(environment)}`;
}
