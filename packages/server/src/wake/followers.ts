// Which nodes get the hints of a node's commits to journals. Every node gets those of transitions, which are few. Text is committed many
// times a second, so its hints go only to nodes that follow the session or its environment: they have a reader, a webhook subscription or
// a listener there.
//
// A node follows by a message to the node whose hint it got, or that the session's row names. It repeats the message while hints come, and
// is forgotten without it. A message can be lost, so text is a hint to every node too if the session had none for some seconds.
import type { Clock } from '../lib/clock.ts';
import { Lately } from '../lib/lately.ts';
import type { Hints } from './hints.ts';

/** A session, or without one all of an environment. */
export interface Followed {
  organizationId: string;
  environment: string;
  sessionId?: string;
}

const FORGOTTEN_AFTER_MS = 30_000;
/** Between two messages, and between two hints of a session to every node. */
const REPEAT_MS = 10_000;

export class Followers {
  /** Nodes, by what they follow. */
  readonly #followers: Lately<string>;
  /** What this node follows: nodes, by what it asked them for. */
  readonly #asked: Lately<string>;
  /** Sessions of which every node got a hint. */
  readonly #announced: Lately<string>;
  /** Sessions of which only followers got the last hints, by environment. */
  readonly #withheld: Lately<string>;

  constructor(clock: Pick<Clock, 'now'>) {
    this.#followers = new Lately(clock, FORGOTTEN_AFTER_MS);
    this.#asked = new Lately(clock, REPEAT_MS);
    this.#announced = new Lately(clock, REPEAT_MS);
    this.#withheld = new Lately(clock, REPEAT_MS);
  }

  /** The nodes that get the hint of a commit; undefined: all. */
  of({ organizationId, environment, sessionId, isText = false }: Hints['journal']): readonly string[] | undefined {
    if (!isText || !this.#announced.has(sessionId, sessionId)) {
      this.#announced.add(sessionId, sessionId);
      return undefined;
    }
    const all = environmentKey({ organizationId, environment });
    this.#withheld.add(all, sessionId);
    return [...new Set([...this.#followers.of(sessionId), ...this.#followers.of(all)])];
  }

  /** A node follows from now on. Returns the sessions of which it may lack a hint. */
  add(followed: Followed, nodeId: string): readonly string[] {
    const key = keyOf(followed);
    const isNew = !this.#followers.has(key, nodeId);
    this.#followers.add(key, nodeId);
    if (!isNew) return [];
    const withheld = this.#withheld.of(environmentKey(followed));
    return followed.sessionId === undefined ? withheld : withheld.filter((one) => one === followed.sessionId);
  }

  /** Whether this node has to ask for the hints; it is asked to remember that it did. */
  mustAsk(followed: Followed, nodeId: string): boolean {
    const key = keyOf(followed);
    if (this.#asked.has(key, nodeId)) return false;
    this.#asked.add(key, nodeId);
    return true;
  }
}

function keyOf(followed: Followed): string {
  return followed.sessionId ?? environmentKey(followed);
}

export function environmentKey({ organizationId, environment }: Omit<Followed, 'sessionId'>): string {
  return `${organizationId} ${environment}`;
}
