// A browser that uses the console, as the service sees it: keeps cookies, sends the origin of its page, and sends the CSRF token of
// its account.
import { Signalbox } from '@signalbox/client';
import type { RawResponse } from './raw.ts';
import { type TestService, watchSecret } from './service.ts';

export interface Account {
  user: { userId: string; name: string; email: string } | null;
  csrfToken: string | null;
  organizations: { organizationId: string; name: string; role: string; permission: string }[];
  signIn: { password: true; passkey: boolean; providers: { id: string; name: string }[] };
  version: string;
}

export interface Browser {
  /** By name. */
  readonly cookies: Map<string, string>;
  /** From the last response. */
  account: Account | undefined;
  /** A request below `/console/api`; remembers the account if the response is one. */
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<RawResponse>;
  get(path: string, headers?: Record<string, string>): Promise<RawResponse>;
  /** A request below `/api/v1`, for an organization of the account. */
  api(method: string, path: string, body?: unknown, headers?: Record<string, string | undefined>): Promise<RawResponse>;
  /** A client for the first organization of the account. */
  client(organizationId?: string): Signalbox;
  cookieHeader(): string;
}

/** `origin`: of the page. Default: the service's own. */
export function openBrowser({ url }: Pick<TestService, 'url'>, { origin = url } = {}): Browser {
  const cookies = new Map<string, string>();

  async function request(path: string, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.headers);
    if (cookies.size > 0 && !headers.has('cookie')) headers.set('cookie', browser.cookieHeader());
    if (!headers.has('origin') && init.method !== 'GET') headers.set('origin', origin);
    const response = await fetch(path.startsWith('http') ? path : url + path, { ...init, headers, redirect: 'manual' });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (/max-age=0/i.test(line) || value === '') cookies.delete(name);
      else cookies.set(name, value);
      if (/session_token/.test(name)) watchSecret(decodeURIComponent(value).split('.')[0] ?? '');
    }
    return response;
  }

  async function toRawResponse(response: Response): Promise<RawResponse> {
    const text = await response.text();
    const isJson = /json/.test(response.headers.get('content-type') ?? '');
    const json = isJson && text !== '' ? JSON.parse(text) : undefined;
    if (json && typeof json === 'object' && 'organizations' in json) browser.account = json as Account;
    return { status: response.status, headers: response.headers, text, json };
  }

  function own(method: string, path: string, body: unknown, extra: Record<string, string> = {}) {
    const headers: Record<string, string> = { ...extra };
    const csrf = browser.account?.csrfToken;
    if (method !== 'GET' && csrf && !('x-signalbox-csrf' in headers)) headers['x-signalbox-csrf'] = csrf;
    if (body !== undefined) headers['content-type'] = 'application/json';
    return request(`/console/api${path}`, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  }

  const browser: Browser = {
    cookies,
    account: undefined,
    post: async (path, body = {}, headers) => toRawResponse(await own('POST', path, body, headers)),
    get: async (path, headers) => toRawResponse(await own('GET', path, undefined, headers)),
    async api(method, path, body, extra = {}) {
      const headers: Record<string, string> = {};
      const given: Record<string, string | undefined> = {
        'x-signalbox-organization': browser.account?.organizations[0]?.organizationId,
        ...(method !== 'GET' && { 'x-signalbox-csrf': browser.account?.csrfToken ?? undefined }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...extra,
      };
      for (const [name, value] of Object.entries(given)) if (value !== undefined) headers[name] = value;
      const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
      return toRawResponse(await request(`/api/v1${path}`, init));
    },
    client: (organizationId = browser.account!.organizations[0]!.organizationId) =>
      new Signalbox({
        session: { organizationId, csrfToken: browser.account!.csrfToken! },
        baseUrl: url,
        fetch: (input, init) => request(String(input), init ?? {}),
      }),
    cookieHeader: () => [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
  };
  return browser;
}

/** The token in a link. */
export function tokenOf(link: string): string {
  const token = new URL(link).hash.slice(1);
  watchSecret(token);
  return token;
}
