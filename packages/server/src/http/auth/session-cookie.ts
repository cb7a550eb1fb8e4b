// A person's request, identified by the cookie of a sign-in: whether the cookie is valid, and whether our own page sent it. A browser
// adds the cookie to every request, whichever page sends it, so a change also needs
//
//   our own origin         which the browser states (`Origin`, `Sec-Fetch-Site`)
//   the CSRF token         which only a page that can read `GET /console/api/account` has, and which is valid for this sign-in alone
import type { IncomingHttpHeaders } from 'node:http';
import type { Db } from '../../db/db.ts';
import { ApiError } from '../../lib/api-error.ts';
import type { Identity, SignIn, Visitor } from '../../people/identity.ts';
import { endSignIn } from '../../people/sign-ins.ts';
import type { Caller } from './auth.ts';

export const CSRF_HEADER = 'x-signalbox-csrf';
export const ORGANIZATION_HEADER = 'x-signalbox-organization';

const MAX_USER_AGENT = 300;

/** As text that the event log can keep: headers arrive as Latin-1 and may hold anything. */
export function userAgentOf(headers: IncomingHttpHeaders): string | null {
  return headers['user-agent']?.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, MAX_USER_AGENT) ?? null;
}

/** The caller as the domain sees it. */
export function visitorOf({ requestId, ipAddress, headers }: Caller): Visitor {
  return { requestId, ipAddress, userAgent: userAgentOf(headers), cookie: headers.cookie };
}

/** Throws 403 `csrf_refused` if a page of another origin sent the request, or its origin is unknown. */
export function requireOwnOrigin(headers: IncomingHttpHeaders, publicUrl: URL): void {
  if (isOwnOrigin(headers, publicUrl)) return;
  throw new ApiError(
    'csrf_refused',
    `Open the console at ${publicUrl.origin}, the address in SIGNALBOX_PUBLIC_URL, and try again.`,
  );
}

function isOwnOrigin({ origin, host, 'sec-fetch-site': site }: IncomingHttpHeaders, publicUrl: URL): boolean {
  if (site !== undefined && site !== 'same-origin') return false;
  if (origin === undefined) return site === 'same-origin';
  if (origin === publicUrl.origin) return true;
  // On their own machine people write 127.0.0.1 for localhost. With https, another name is another site.
  return publicUrl.protocol === 'http:' && host !== undefined && origin === `http://${host}`;
}

/** Throws 403 `csrf_refused` without the token of this sign-in. */
export function requireCsrfToken(identity: Identity, signIn: SignIn, headers: IncomingHttpHeaders): void {
  const given = headers[CSRF_HEADER];
  if (typeof given === 'string' && identity.isCsrfTokenOf(signIn, given)) return;
  throw new ApiError(
    'csrf_refused',
    'Send the csrfToken of GET /console/api/account in X-Signalbox-CSRF with every change. Load the page again.',
  );
}

/** The `Cookie` header that a browser would send after these `Set-Cookie` headers. */
function cookieHeaderOf(setCookies: readonly string[]): string {
  return setCookies.map((one) => one.split(';', 1)[0]!).join('; ');
}

/** Returns the new sign-in, if there is one, and ends the browser's previous one. */
export async function replaceSignIn(
  db: Db,
  identity: Identity,
  { cookie }: Visitor,
  setCookies: readonly string[],
): Promise<SignIn | undefined> {
  const begun = await identity.find(cookieHeaderOf(setCookies));
  const before = begun && (await identity.find(cookie));
  if (before && before.signInId !== begun.signInId) await endSignIn(db, before.userId, before.signInId);
  return begun;
}

export function signedOut(): ApiError {
  return new ApiError('signed_out', 'You are no longer signed in. Sign in again.');
}
