// A whole service with the console and its users, and browsers in which they are signed in.

import type { Role } from '@signalbox/client';
import { Signalbox } from '@signalbox/client';
import type { Account } from '@signalbox/contract/console';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { expect } from 'vitest';
import {
  startTestService,
  type TestService,
  type TestServiceOptions,
  watchSecret,
} from '../../../server/test/support/service.ts';
import { newPage } from './browser.ts';
import { consoleDir } from './console-dir.ts';

export interface Person {
  name: string;
  email: string;
  password: string;
  userId: string;
  /** `name=value`, from a sign-in over HTTP. */
  cookie: string;
  csrfToken: string;
  /** The console's client, with this user's session. */
  client: Signalbox;
}

export interface TestConsole {
  service: TestService;
  /** `http://localhost:…`, the address of the console. */
  origin: string;
  organizationId: string;
  owner: Person;
  /** Invites a person who then joins. */
  person(role: Role, name?: string): Promise<Person>;
  /** A new browser in which the person is signed in, at a page of the organization such as `/agents`. */
  open(person: Person, path?: string, options?: BrowserContextOptions): Promise<Page>;
}

const password = 'a long sentence for tests';

export async function startConsole(options: TestServiceOptions = {}): Promise<TestConsole> {
  const service = await startTestService({ consoleDir, ...options });
  const { origin, hash } = new URL(service.setupLink!);
  const owner = await join(origin, hash.slice(1), {
    name: 'Olga Owner',
    email: 'olga@example.com',
    organizationName: 'Acme',
  });
  const { organizationId } = service;
  let people = 0;
  const inOrganization = `org_${organizationId.replace(/^org_/, '')}`;

  return {
    service,
    origin,
    organizationId: inOrganization,
    owner,
    async person(role, name = `${role} ${++people}`) {
      const { link } = await owner.client.invitations.create({ role });
      const email = `${name.toLowerCase().replaceAll(/\W+/g, '.')}@example.com`;
      return await join(origin, new URL(link!).hash.slice(1), { name, email });
    },
    async open(person, path = '', contextOptions = {}) {
      const page = await newPage(contextOptions);
      const [name = '', value = ''] = person.cookie.split(/=(.*)/s);
      await page.context().addCookies([{ name, value, url: origin }]);
      await page.goto(`${origin}/console/${inOrganization}${path}`);
      return page;
    },
  };
}

/** A call outside /api/v1, as the console sends it, without a browser. */
async function consoleCall(
  origin: string,
  path: string,
  body: unknown,
  { cookie, csrfToken }: { cookie?: string; csrfToken?: string } = {},
): Promise<Response> {
  return await fetch(`${origin}/console/api/${path}`, {
    method: 'POST',
    headers: {
      origin,
      'content-type': 'application/json',
      ...(cookie !== undefined && { cookie }),
      ...(csrfToken !== undefined && { 'x-signalbox-csrf': csrfToken }),
    },
    body: JSON.stringify(body),
  });
}

async function join(
  origin: string,
  token: string,
  given: { name: string; email: string; organizationName?: string },
): Promise<Person> {
  watchSecret(token);
  watchSecret(password);
  const response = await consoleCall(origin, 'links/accept', { token, password, ...given });
  const account = (await response.json()) as Account;
  expect(response.status, JSON.stringify(account)).toBe(200);
  const cookie = response.headers.getSetCookie()[0]!.split(';', 1)[0]!;
  watchSecret(cookie.split('=')[1]!);
  const csrfToken = account.csrfToken!;
  const [{ organizationId } = { organizationId: '' }] = account.organizations;
  const client = new Signalbox({
    baseUrl: origin,
    session: { organizationId, csrfToken },
    fetch: (input, init) => {
      const headers = new Headers(init?.headers);
      headers.set('cookie', cookie);
      headers.set('origin', origin);
      return fetch(input, { ...init, headers });
    },
  });
  return { ...given, password, userId: account.user!.userId, cookie, csrfToken, client };
}
