// Knows when the service in this process is idle: when nothing happens any more unless a clock moves, a client sends something, or the
// test continues.
//
// It counts work instead of waiting for a while, so it is as certain on a slow machine as on a fast one. The process is idle if
//   - no connection to PostgreSQL awaits a response, or is being opened or closed,
//   - no timer of a few milliseconds is pending, such as the one that collects text for the journal,
//   - no immediate, name lookup, connection attempt or job of a thread is pending,
//   - and two turns of the event loop brought no event. What this process sends to itself arrives within a turn.
// It can't see other processes than PostgreSQL, and a notification that PostgreSQL has not delivered yet.
import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import type { Connection } from '../../src/db/connection.ts';
import { atFileEnd } from './at-file-end.ts';

/** Waits for a condition, and may move a clock until it is true. */
interface Waiter {
  isOver(): boolean | Promise<boolean>;
  /** Called when the process is idle and no waiter is over. False if no time is left to pass. */
  pass?: () => boolean;
  end(error?: unknown): void;
}

const { setTimeout, clearTimeout } = globalThis;
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

// Longer ones limit something or repeat it, and a test must not wait for them.
const BRIEF_MS = 100;
const QUIET_TURNS = 2;
// Conditions are checked so often while the process is busy.
const MAX_PAUSES = 20;
const MAX_TURNS = 1_000;
// About 20 seconds: then a test that hangs says why.
const LONG_BUSY = 1_000;
const PENDING = /^Immediate$|^MessagePort$|Req/;

const connections = new Set<Connection>();
const briefTimers = new Set<NodeJS.Timeout>();
const waiters = new Set<Waiter>();
const ignored = new Set<(connection: Connection) => boolean>();
let isWatching = false;
let busyRounds = 0;

subscribe('signalbox.connection', (message) => {
  const connection = message as Connection;
  connections.add(connection);
  connection.once('end', () => connections.delete(connection));
});

// Otherwise a small message may wait 40 ms for the acknowledgement of the one before it.
for (const name of ['net.client.socket', 'net.server.socket'])
  subscribe(name, (message) => (message as { socket: Socket }).socket.setNoDelay(true));

globalThis.setTimeout = Object.assign((act: (...given: unknown[]) => void, ms = 1, ...given: unknown[]) => {
  if (ms > BRIEF_MS) return setTimeout(act, ms, ...given);
  const timer = setTimeout(() => {
    briefTimers.delete(timer);
    act(...given);
  }, ms);
  briefTimers.add(timer);
  return timer;
}, setTimeout) as typeof globalThis.setTimeout;

globalThis.clearTimeout = (timer) => {
  briefTimers.delete(timer as NodeJS.Timeout);
  clearTimeout(timer);
};

atFileEnd(() => {
  ignored.clear();
  for (const { end } of waiters) end(new Error('The test file has ended'));
});

/** Does not count connections that the test keeps waiting, until the returned function is called or the test file ends. */
export function ignoreConnections(which: (connection: Connection) => boolean): () => void {
  ignored.add(which);
  return () => ignored.delete(which);
}

/** What keeps the process busy, in words; empty if nothing that can be counted does. */
function workUnderWay(): string[] {
  return [
    ...[...connections].filter(isCounted).map(() => 'PostgreSQL'),
    ...[...briefTimers].map(() => 'timer'),
    ...process.getActiveResourcesInfo().filter((kind) => PENDING.test(kind)),
  ];
}

const isCounted = (connection: Connection) => connection.isAwaited && ![...ignored].some((which) => which(connection));

/** Resolves when the process is idle. */
export async function idle(): Promise<void> {
  while (!(await becomesIdle()));
}

/** Resolves when the condition is true. Without a clock that passes meanwhile, the service has to make it true by itself. */
export function until(isOver: Waiter['isOver'], pass?: Waiter['pass']): Promise<void> {
  return new Promise((resolve, reject) => {
    const waiter: Waiter = {
      isOver,
      ...(pass && { pass }),
      end(error) {
        waiters.delete(waiter);
        error === undefined ? resolve() : reject(error);
      },
    };
    waiters.add(waiter);
    if (!isWatching) void watch();
  });
}

async function watch(): Promise<void> {
  isWatching = true;
  while (waiters.size > 0) {
    const isIdle = await becomesIdle();
    const checked = [...waiters];
    const isOver = await Promise.all(checked.map(endIfOver));
    // The checks themselves were work, and what follows from a condition comes before the next move.
    if (isOver.includes(true) || !isIdle || !(await becomesIdle())) continue;
    const moved = checked.map((waiter) => (waiters.has(waiter) && waiter.pass?.()) ?? false);
    if (!moved.includes(true)) await pause(1);
  }
  isWatching = false;
}

async function endIfOver(waiter: Waiter): Promise<boolean> {
  try {
    if (!(await waiter.isOver())) return false;
    waiter.end();
  } catch (error) {
    waiter.end(error);
  }
  return true;
}

/** False if it is still busy after a while. */
async function becomesIdle(): Promise<boolean> {
  let events = -1;
  let pauses = 0;
  let quiet = 0;
  for (let turns = 0; turns < MAX_TURNS && pauses < MAX_PAUSES; turns += 1) {
    await turn();
    const { events: now } = performance.nodeTiming.uvMetricsInfo;
    quiet = now === events ? quiet + 1 : 0;
    events = now;
    if (workUnderWay().length > 0) {
      quiet = 0;
      pauses += 1;
      await pause(1);
    } else if (quiet === QUIET_TURNS) {
      busyRounds = 0;
      return true;
    }
  }
  busyRounds += 1;
  if (busyRounds === LONG_BUSY) console.error(`No clock moves, because of ${workUnderWay().join(', ')}`);
  return false;
}
