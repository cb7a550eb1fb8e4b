// People at the console: from the first link on, and what each role may do.
import { roles } from '@signalbox/contract';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBrowser, tokenOf } from './support/browser.ts';
import { asProblem } from './support/raw.ts';
import { startTestService, type TestService } from './support/service.ts';

const password = 'seven small red boats';
let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

test('the first person comes in by the setup link, names the organization and owns it', async () => {
  const browser = openBrowser(service);
  const token = tokenOf(service.setupLink!);
  expect((await browser.post('/links/look', { token })).json.link).toMatchObject({
    type: 'setup',
    organizationName: 'My organization',
    role: 'owner',
    email: null,
    name: null,
  });
  expect((await browser.get('/account')).json).toMatchObject({ user: null, csrfToken: null, organizations: [] });
  const given = { token, name: 'Mara', email: 'Mara@Example.com', password, organizationName: 'Acme' };
  const accepted = await browser.post('/links/accept', given);
  expect(accepted.status).toBe(200);
  expect(accepted.json).toMatchObject({
    user: { userId: expect.stringMatching(/^usr_/), name: 'Mara', email: 'mara@example.com' },
    csrfToken: expect.any(String),
    organizations: [{ organizationId: service.organizationId, name: 'Acme', role: 'owner', permission: 'admin' }],
  });
  expect((await browser.get('/account')).json).toEqual(accepted.json);
  const { user } = browser.account!;
  expect((await browser.api('GET', '/me')).json).toEqual({
    organization: { organizationId: service.organizationId, name: 'Acme' },
    apiKey: null,
    user,
    permission: 'admin',
  });
  const { apiKey } = (await browser.api('POST', '/api_keys', { name: 'First', permission: 'admin' })).json;
  expect((await service.clientWith(apiKey.secret).me()).apiKey?.name).toBe('First');
  const [created] = (await service.client.events.list({ type: 'api_key.created', limit: 1 })).data;
  expect(created!.actor).toEqual({ type: 'user', id: user!.userId, name: 'Mara' });

  expect((await browser.post('/sign_out')).json).toMatchObject({ user: null, csrfToken: null });
  expect(browser.cookies.size).toBe(0);
  const again = await browser.post('/sign_in', { email: 'mara@example.com', password });
  expect(again.json.user).toEqual(user);
  expect(await browser.client().me()).toMatchObject({ user });
  expect(roles).toContain(browser.account!.organizations[0]!.role);
  const wrong = await openBrowser(service).post('/sign_in', { email: 'mara@example.com', password: 'not this one' });
  expect(asProblem(wrong).code).toBe('sign_in_failed');
});
