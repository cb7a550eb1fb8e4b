/**
 * Redirects within the server that a request was sent to, which its sender may follow. The server decides about its own paths anyway, so
 * headers with secrets reach no other server. Everything else is another destination than the one that a person chose.
 */
export interface Redirect {
  /** Where to send the same request; undefined if that is not allowed. */
  readonly url?: string;
  /** The reason, after "redirects" and before "are not followed". */
  readonly refusal?: string;
  /** The target for people: without user info, query and fragment. Text of the server's. Empty if it names none. */
  readonly shown: string;
}

export interface RedirectedRequest {
  readonly url: string;
  readonly method: string;
  /**
   * Whether a 301 or 302 says that the request was not processed, so that it is sent as it is. Otherwise only GET and HEAD are, because
   * many programs respond like this to a form that they did process.
   */
  readonly isUnprocessed?: boolean;
  /** Whether the headers may be sent there. */
  readonly mayReceive?: (url: URL) => boolean;
}

/** In a row. */
export const MAX_REDIRECTS = 3;

/** Undefined if the response is not a redirect. */
export function redirectOf(
  { url, method, isUnprocessed = false, mayReceive = () => true }: RedirectedRequest,
  status: number,
  location: string | null | undefined,
): Redirect | undefined {
  if (![301, 302, 303, 307, 308].includes(status)) return undefined;
  const from = new URL(url);
  const to = location ? URL.parse(location, from) : null;
  if (!to) return { refusal: 'without an address', shown: '' };
  const shown = `${to.origin === 'null' ? to.protocol : to.origin}${to.pathname}`;
  const refuse = (refusal: string): Redirect => ({ refusal, shown });
  const isSafe = method === 'GET' || method === 'HEAD';
  if (from.hostname !== to.hostname) return refuse('to another host');
  if (from.protocol === 'https:' && to.protocol !== 'https:') return refuse('from https to http');
  const isSecured = from.protocol === 'http:' && to.protocol === 'https:' && from.port === '' && to.port === '';
  if (from.origin !== to.origin && !isSecured) return refuse('to another port');
  if (!mayReceive(to)) return refuse('to a port that a secret may not be sent to');
  if (to.username !== '' || to.password !== '') return refuse('with user info');
  if (!isSafe && (status === 303 || (status < 303 && !isUnprocessed))) return refuse('of this kind');
  to.hash = '';
  return { url: to.href, shown };
}

/** For the author of the URL. `shown` is that of the redirect, without secrets. */
export function redirectMessage(status: number, { refusal }: Redirect, shown: string): string {
  if (refusal === undefined) return `HTTP ${status}: more than ${MAX_REDIRECTS} redirects in a row are not followed.`;
  const which = `redirects ${refusal} are not followed`;
  if (shown === '') return `HTTP ${status}: ${which}.`;
  return `HTTP ${status}: the server redirects to ${shown}, and ${which}. If that is the right address, use it as the URL.`;
}
