// Whether a server has forgotten the session of a connection: it was restarted, another instance of it responds, or its time was up.
//
// The protocol says 404. Servers, and the bridges and proxies in front of them, say it in many ways, and some of these can mean something else.
// If the response itself does not say it, the list of tools is requested in the same session: a server that responds to that still knows
// the session, so what it keeps there (a browser, a login) is not thrown away because of one failed call.
import { EgressError } from '../../egress/errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { startDeadline } from '../request/deadline.ts';
import type { McpConnection } from './mcp-connection.ts';
import { McpHttpError, McpRedirectError, McpRefusal, McpResponseError } from './mcp-failure.ts';
import type { Lease } from './mcp-pool.ts';

export interface SessionLoss {
  /** Whether it is certain that the server has not run the call. */
  readonly isUnprocessed: boolean;
}

/**
 * What an error says about the session.
 *
 *   gone      the server does not know it, and has therefore not run the call
 *   refused   the call was not run, maybe because of the session
 *   unclear   it may have run, or the session may be gone
 *   nothing
 */
type Sign = 'gone' | 'refused' | 'unclear' | 'nothing';

const CHECK_TIMEOUT_SECONDS = 5;

/** The gap is bounded, because a body can be long. */
const SAY_SESSION_IS_GONE = [
  /session[^.\n]{0,60}?(?:not[ _-]?found|not exist|no longer|not valid|expired|invalid|unknown|terminated|closed|missing)/i,
  /(?:no valid|no active|no such|invalid|unknown|missing|expired|stale|find(?: the)?)[ _-]session/i,
  /\bsession.?id\b/i,
];
const SAYS_HANDSHAKE_IS_MISSING =
  /\b(?:server|session|client|connection|transport) (?:is |was |has )?(?:not |un)(?:been )?initiali[sz]ed|before initiali[sz]ation/i;

/** JSON-RPC: invalid request, and two that servers have chosen for it. */
const CODES_OF_SESSIONS: ReadonlySet<number> = new Set([-32600, -32001, -32002]);
/** An error of the server, in a session or outside of it. */
const SERVER_ERROR = -32000;

/** A limit of requests, and a timeout, say nothing about the session. */
const STATUSES_WITHOUT_SIGN: ReadonlySet<number> = new Set([408, 429]);

function saysSessionIsGone(text: string): boolean {
  return SAY_SESSION_IS_GONE.some((words) => words.test(text));
}

function signOf(error: unknown): Sign {
  if (error instanceof McpHttpError) {
    const { status, body } = error;
    const says = saysSessionIsGone(body) || SAYS_HANDSHAKE_IS_MISSING.test(body);
    if (status === 404 || status === 410 || (says && status < 500)) return 'gone';
    if (STATUSES_WITHOUT_SIGN.has(status)) return 'nothing';
    // A program that fails may also speak of a session of its own, with its database for example.
    return says || status < 500 ? 'refused' : 'unclear';
  }
  if (error instanceof McpRefusal) {
    if (SAYS_HANDSHAKE_IS_MISSING.test(error.reason)) return 'gone';
    const says = saysSessionIsGone(error.reason);
    if (CODES_OF_SESSIONS.has(error.code)) return says ? 'gone' : 'refused';
    return says || error.code === SERVER_ERROR ? 'refused' : 'nothing';
  }
  if (error instanceof McpRedirectError) return error.status === 303 ? 'unclear' : 'refused';
  const isCutOff = error instanceof EgressError && error.kind === 'reset';
  return isCutOff || error instanceof McpResponseError ? 'unclear' : 'nothing';
}

/** Undefined if the server still knows the session, as far as can be found out. Throws only the signal's reason. */
export async function sessionLoss(
  error: unknown,
  { connection, kept }: Pick<Lease, 'connection' | 'kept'>,
  clock: Clock,
  signal: AbortSignal,
): Promise<SessionLoss | undefined> {
  const sign = signOf(error);
  if (sign === 'gone') return { isUnprocessed: true };
  // A session that has just begun is not forgotten without a word.
  if (sign === 'nothing' || connection.stateless || !kept) return undefined;
  const time = startDeadline(clock, CHECK_TIMEOUT_SECONDS, signal);
  try {
    return (await isKnown(connection, time.signal)) ? undefined : { isUnprocessed: sign === 'refused' };
  } finally {
    time.end();
    signal.throwIfAborted();
  }
}

async function isKnown(connection: McpConnection, signal: AbortSignal): Promise<boolean> {
  try {
    const page = await connection.listPage(undefined, signal);
    return typeof page === 'object' && page !== null && 'tools' in page;
  } catch (error) {
    // Without a connection nothing is known, and the session may be there when it is back.
    return error instanceof EgressError && error.kind !== 'reset' && error.kind !== 'timeout';
  }
}
