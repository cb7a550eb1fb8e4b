// A pool of connections for one purpose.
//
// A caller gets an idle connection, or waits in line for at most WAIT_MS. The line is served by connections that are returned and by new
// ones; while there is room, a connection is opened for each waiting caller. Organizations take turns in it (line.ts), and none has more
// than its part of the connections: the others may be in transactions that wait for each other.
//
// If a connection can't be opened while the pool has others, the line waits for those, and the pool does not grow for a while: the server
// may be at its limit. If it has none, the database is unavailable, and everything in line fails. From then on the pool opens one
// connection at a time, after a rest that doubles up to MAX_REST_MS, and callers wait for the next result. An unavailable database is
// therefore tried about once a second, however many callers there are, and no caller gets a result from before its call.
import { OVER } from '../lib/aborted.ts';
import { exponentialMs } from '../lib/back-off.ts';
import type { Clock } from '../lib/clock.ts';
import type { Connection } from './connection.ts';
import { type InLine, Line } from './line.ts';
import { isServerError } from './pipeline.ts';

export interface PoolLog {
  warn(fields: object, message: string): void;
}

/** What opens the connections of a pool, and knows which of them may be used. */
export interface ConnectionSource {
  /** Rejects if no host accepts the connection. */
  open(): Promise<Connection>;
  /** Whether it may be used; others are replaced. */
  isCurrent(connection: Connection): boolean;
}

export interface PooledConnection extends Connection {
  /** Returns it to the pool, or closes it if `isBroken`. Call it once. */
  release(isBroken?: boolean): void;
}

interface Waiting extends InLine {
  serve(connection: PooledConnection): void;
  fail(error: unknown): void;
  /** Aborted when it has left the line. */
  left: AbortController;
}

/** Times are counted by `countSecond`. */
interface Member {
  ageSeconds: number;
  /** Undefined while a caller has it. */
  idleSeconds: number | undefined;
  /** The organization that uses it. */
  who: string | undefined;
}

// How long a caller waits for a connection.
const WAIT_MS = 10_000;
const IDLE_SECONDS = 60;
// Replaces even busy connections, so that changes such as a new address in DNS take effect.
const LIFETIME_SECONDS = 600;
// Between attempts while the database is unavailable. Callers wait for the next one, so it is short.
const FIRST_REST_MS = 50;
const MAX_REST_MS = 1_000;
/** The part of one organization. */
const MAX_PART = 0.8;
// Between attempts to grow that the server refuses. They cost the server a process each.
const REFUSED_REST_MS = 10_000;

/** The server responds but refuses the connection, such as at its limit. It is neither starting nor stopping. */
export function isRefusal(error: unknown): boolean {
  return isServerError(error) && !error.code.startsWith('57P');
}

export class ConnectionPool {
  readonly #source: ConnectionSource;
  readonly #max: number;
  readonly #clock: Clock;
  readonly #log: PoolLog | undefined;
  readonly #members = new Map<Connection, Member>();
  /** The most recently used is last. */
  #idle: Connection[] = [];
  readonly #line = new Line<Waiting>();
  /** How many connections each organization has. */
  readonly #usedBy = new Map<string, number>();
  #opening = 0;
  /** Failed attempts in a row, while the pool had no connection. */
  #failures = 0;
  /** Set while the pool opens no connection. */
  #rest: AbortController | undefined;
  #ended: PromiseWithResolvers<void> | undefined;

  constructor(source: ConnectionSource, options: { max: number; clock: Clock; log: PoolLog | undefined }) {
    this.#source = source;
    this.#max = options.max;
    this.#clock = options.clock;
    this.#log = options.log;
  }

  /** Open connections, without the ones that are being opened. */
  get openCount(): number {
    return this.#members.size;
  }

  get totalCount(): number {
    return this.#members.size + this.#opening;
  }

  get idleCount(): number {
    return this.#idle.length;
  }

  get waitingCount(): number {
    return this.#line.length;
  }

  /** `who`: the organization; undefined for the service. Rejects with the error of the last attempt to open a connection, or after WAIT_MS. */
  async connect(who?: string): Promise<PooledConnection> {
    if (this.#ended) throw new Error('The pool of connections is closed');
    while (this.#idle.length > 0 && this.#mayHave(who)) {
      const idle = this.#idle.pop()!;
      if (this.#source.isCurrent(idle)) return this.#checkOut(idle, who);
      this.#close(idle);
    }
    const { promise, resolve, reject } = Promise.withResolvers<PooledConnection>();
    const waiting: Waiting = { who, serve: resolve, fail: reject, left: new AbortController() };
    this.#line.push(waiting);
    void this.#clock.sleep(WAIT_MS, waiting.left.signal).then(
      () => this.#giveUp(waiting),
      () => {},
    );
    this.#grow();
    return promise;
  }

  /** Serves those in line, waits for connections that are in use, and closes all. */
  end(): Promise<void> {
    this.#ended ??= Promise.withResolvers();
    for (const connection of this.#idle.splice(0)) this.#close(connection);
    this.#endIfDone();
    return this.#ended.promise;
  }

  /** Call it once a second while there are connections. */
  countSecond(): void {
    for (const [connection, member] of this.#members) {
      member.ageSeconds += 1;
      if (member.idleSeconds === undefined) continue;
      member.idleSeconds += 1;
      if (member.idleSeconds < IDLE_SECONDS && member.ageSeconds < LIFETIME_SECONDS) continue;
      this.#idle.splice(this.#idle.indexOf(connection), 1);
      this.#close(connection);
    }
  }

  #grow(): void {
    if (this.#rest) return;
    const room = this.#max - this.#members.size;
    const most = Math.min(this.#line.length, this.#failures > 0 ? 1 : room, room);
    while (this.#opening < most) void this.#open();
  }

  async #open(): Promise<void> {
    this.#opening += 1;
    try {
      const connection = await this.#source.open();
      this.#opening -= 1;
      this.#failures = 0;
      this.#add(connection);
    } catch (error) {
      this.#opening -= 1;
      this.#failed(error);
    }
    this.#grow();
    this.#endIfDone();
  }

  #add(connection: Connection): void {
    this.#members.set(connection, { ageSeconds: 0, idleSeconds: undefined, who: undefined });
    connection.on('error', (error: Error & { code?: string }) => {
      if (this.#members.get(connection)?.idleSeconds === undefined) return;
      this.#log?.warn({ code: error.code }, 'lost an idle database connection');
      this.#lost(connection);
    });
    connection.once('end', () => this.#lost(connection));
    this.#hand(connection);
  }

  #failed(error: unknown): void {
    if (this.totalCount > 0) this.#keepSize(error);
    else this.#failLine(error);
  }

  #keepSize(error: unknown): void {
    const { code, message } = error as { code?: string; message: string };
    const fields = { code, reason: message };
    if (!this.#rest) this.#log?.warn(fields, 'no further database connection; working with the open ones');
    this.#restFor(isRefusal(error) ? REFUSED_REST_MS : MAX_REST_MS);
  }

  #failLine(error: unknown): void {
    for (const waiting of this.#line.clear()) {
      waiting.left.abort(OVER);
      waiting.fail(error);
    }
    this.#failures += 1;
    this.#restFor(exponentialMs(this.#failures, FIRST_REST_MS, MAX_REST_MS));
  }

  #restFor(ms: number): void {
    this.#rest?.abort(OVER);
    const rest = new AbortController();
    this.#rest = rest;
    void this.#clock.sleep(ms, rest.signal).then(
      () => this.#endRest(),
      () => {},
    );
  }

  #endRest(): void {
    this.#rest?.abort(OVER);
    this.#rest = undefined;
    this.#grow();
  }

  #giveUp(waiting: Waiting): void {
    this.#line.delete(waiting);
    waiting.fail(new Error(`No connection became available within ${WAIT_MS / 1000} s`));
    this.#endIfDone();
  }

  readonly #mayHave = (who: string | undefined): boolean =>
    who === undefined || (this.#usedBy.get(who) ?? 0) < Math.max(1, Math.floor(this.#max * MAX_PART));

  #setUser(member: Member | undefined, who: string | undefined): void {
    if (!member || member.who === who) return;
    const before = member.who === undefined ? 0 : this.#usedBy.get(member.who)! - 1;
    if (before > 0) this.#usedBy.set(member.who!, before);
    else if (member.who !== undefined) this.#usedBy.delete(member.who);
    member.who = who;
    if (who !== undefined) this.#usedBy.set(who, (this.#usedBy.get(who) ?? 0) + 1);
  }

  #checkOut(connection: Connection, who: string | undefined): PooledConnection {
    const member = this.#members.get(connection)!;
    member.idleSeconds = undefined;
    this.#setUser(member, who);
    let isReleased = false;
    const release = (isBroken = false) => {
      if (isReleased) throw new Error('The connection was released before');
      isReleased = true;
      if (isBroken) this.#close(connection);
      else this.#hand(connection);
    };
    return Object.assign(connection, { release });
  }

  /** Hands a connection that no caller has to the first in line. */
  #hand(connection: Connection): void {
    const member = this.#members.get(connection);
    this.#setUser(member, undefined);
    const mayBeUsed = member && member.ageSeconds < LIFETIME_SECONDS && this.#source.isCurrent(connection);
    const first = mayBeUsed ? this.#line.shift(this.#mayHave) : undefined;
    if (first) {
      first.left.abort(OVER);
      first.serve(this.#checkOut(connection, first.who));
    } else if (mayBeUsed && !this.#ended) {
      member.idleSeconds = 0;
      this.#idle.push(connection);
    } else {
      this.#close(connection);
    }
  }

  #lost(connection: Connection): void {
    const index = this.#idle.indexOf(connection);
    if (index >= 0) this.#idle.splice(index, 1);
    this.#close(connection);
  }

  #close(connection: Connection): void {
    this.#setUser(this.#members.get(connection), undefined);
    if (this.#members.delete(connection)) connection.end().catch(() => {});
    // No connection will be returned to the callers in line.
    if (this.totalCount === 0) this.#endRest();
    else this.#grow();
    this.#endIfDone();
  }

  #endIfDone(): void {
    if (!this.#ended || this.totalCount > 0 || this.#line.length > 0) return;
    this.#rest?.abort(OVER);
    this.#ended.resolve();
  }
}
