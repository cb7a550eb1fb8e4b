// The members of a test's organization: the owner and those they invite.
import type { CreateInvitation } from '@signalbox/client';
import { expect } from 'vitest';
import { type Browser, openBrowser, tokenOf } from './browser.ts';
import type { TestService } from './service.ts';

export const password = 'seven small red boats';

/** The owner, who set up the installation. */
export async function setUp(service: TestService): Promise<Browser> {
  const browser = openBrowser(service);
  const given = { token: tokenOf(service.setupLink!), name: 'Mara', email: 'mara@example.com', password };
  const accepted = await browser.post('/links/accept', { ...given, organizationName: 'Acme' });
  expect(accepted.status, accepted.text).toBe(200);
  return browser;
}

/** A new member of `by`'s first organization. */
export async function join(
  by: Browser,
  service: TestService,
  name: string,
  role = 'member',
  canDecide?: CreateInvitation['canDecide'],
): Promise<Browser> {
  const { link } = (await by.api('POST', '/invitations', { role, ...(canDecide && { canDecide }) })).json;
  const browser = openBrowser(service);
  const email = `${name.toLowerCase()}@example.com`;
  const accepted = await browser.post('/links/accept', { token: tokenOf(link), name, email, password });
  expect(accepted.status, accepted.text).toBe(200);
  return browser;
}
