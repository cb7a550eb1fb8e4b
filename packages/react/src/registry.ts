/** Stores that components share: one for each session, so that several components open one stream. */
import { Signalbox } from '@signalbox/client';
import { createSessionStore, type NewSession, type SessionStore } from '@signalbox/client/conversation';

/** How to reach the service: with a client, or with a function that gets a token. */
export type Access =
  | { client: Signalbox; baseUrl?: undefined; token?: undefined }
  | {
      /** The URL of the service. */
      baseUrl: string;
      /**
       * Gets a session token from your own server. Called when one is needed: at first, and when the one before has expired. It need
       * not be the same function in each render.
       */
      token: () => Promise<string>;
      client?: undefined;
    };

export type UseSessionOptions = Access & {
  /**
   * Whose page it is, if that can change without a reload: what was loaded for one user is not shown to another. Any string of your
   * own.
   */
  user?: string | undefined;
} & (
    | { sessionId: string; agentId?: undefined }
    | (NewSession & {
        /** As soon as it is known: the session that the first message has opened, or an earlier one. */
        sessionId?: string | null | undefined;
        /** Components with the same one share a session that is yet to be opened. Default: one for each agent and environment. */
        id?: string | undefined;
      })
  );

export interface Shared {
  readonly scope: string;
  /** The ID of a session that is yet to be opened; null once it was asked for by its id. */
  draft: string | null;
  readonly store: SessionStore;
  /** The newest function of a component. */
  token: (() => Promise<string>) | undefined;
}

/** Stores without subscribers that are kept, so that nothing is read again when a component is shown again. */
const maxIdle = 20;
const shared: Shared[] = [];
const clientNumbers = new WeakMap<Signalbox, number>();
let clients = 0;

/** Identifies the store of these options. */
export function keyOf(options: UseSessionOptions): string {
  const { scope, draft } = placeOf(options);
  return JSON.stringify([scope, options.sessionId ?? null, draft]);
}

/** The store of these options, existing or new. On a server each call creates one, because what a user reads is not for another. */
export function sharedStore(options: UseSessionOptions): Shared {
  const { scope, draft } = placeOf(options);
  const { sessionId } = options;
  const found = shared.find(
    (one) =>
      one.scope === scope &&
      (sessionId ? one.store.getSnapshot().sessionId === sessionId : draft !== null && one.draft === draft),
  );
  if (found) {
    // A component that then names no session wants a new one.
    if (sessionId) found.draft = null;
    return found;
  }
  const created = create(options, scope, sessionId ? null : draft);
  if ('window' in globalThis) {
    shared.push(created);
    const idle = shared.filter((one) => one !== created && !one.store.hasSubscribers);
    for (const one of idle.slice(0, Math.max(0, idle.length - maxIdle))) shared.splice(shared.indexOf(one), 1);
  }
  return created;
}

function create(options: UseSessionOptions, scope: string, draft: string | null): Shared {
  const access: { token: Shared['token'] } = { token: options.token };
  const client = options.client ?? new Signalbox({ baseUrl: options.baseUrl, token: () => access.token!() });
  const sessionId = options.sessionId ?? undefined;
  const store = createSessionStore({ client, sessionId, open: newSessionOf(options) });
  return Object.assign(access, { scope, draft, store });
}

function newSessionOf(options: UseSessionOptions): NewSession | undefined {
  if (options.agentId === undefined) return undefined;
  const { client: _, baseUrl, token, user, sessionId, id, ...open } = options;
  return open;
}

function placeOf(options: UseSessionOptions): { scope: string; draft: string | null } {
  const { client, baseUrl, user } = options;
  const scope = JSON.stringify([client ? numberOf(client) : baseUrl, user]);
  if (options.agentId === undefined) return { scope, draft: null };
  return { scope, draft: JSON.stringify([options.agentId, options.environment, options.id]) };
}

function numberOf(client: Signalbox): number {
  let number = clientNumbers.get(client);
  if (number === undefined) {
    number = clients++;
    clientNumbers.set(client, number);
  }
  return number;
}
