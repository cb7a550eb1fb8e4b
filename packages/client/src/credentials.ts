/** The headers with which a client authenticates, and what it reads of the environment. */
import type { ClientOptions } from './transport.ts';

/** Checked here, because fetch would put an invalid header value, a secret, into its error message. */
export function credentialsOf({ apiKey: given, session, token }: ClientOptions): Record<string, string> {
  const visible = /^[\x21-\x7e]+$/;
  if (token !== undefined) {
    if (given !== undefined || session !== undefined) throw new TypeError('give apiKey, token or session, not several');
    if (typeof token !== 'function') throw new TypeError('token must be a function that returns a session token');
    return {};
  }
  if (session !== undefined) {
    if (given !== undefined) throw new TypeError('give apiKey or session, not both');
    const { organizationId, csrfToken } = session;
    if (![organizationId, csrfToken].every((value) => typeof value === 'string' && visible.test(value))) {
      throw new TypeError(
        'session must hold organizationId and csrfToken: printable ASCII without spaces or line ends',
      );
    }
    return { 'x-signalbox-organization': organizationId, 'x-signalbox-csrf': csrfToken };
  }
  const apiKey = given ?? environment('SIGNALBOX_API_KEY');
  if (apiKey === undefined) {
    throw new TypeError('apiKey is missing: set the environment variable SIGNALBOX_API_KEY, or pass apiKey');
  }
  if (typeof apiKey !== 'string' || !visible.test(apiKey)) {
    throw new TypeError('apiKey must be an API key: printable ASCII without spaces or line ends');
  }
  return { authorization: `Bearer ${apiKey}` };
}

/** The service on this machine, at the port that `signalbox start` reads from the same variable. */
export function localUrl(): string {
  // Kubernetes sets a variable of this name to `tcp://…` for a service called signalbox.
  const port = environment('SIGNALBOX_PORT')?.match(/^[1-9]\d{0,4}$/)?.[0] ?? '4500';
  return `http://127.0.0.1:${port}`;
}

/** A variable of the environment that is set and not empty. There is none in a browser. */
export function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] || undefined;
}
