// Which caller may use which route: every route of the contract, without a key and with a key of each permission.
import { type Permission, type Route, routes } from '@signalbox/contract';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';

const ranks: readonly Permission[] = ['read', 'write', 'admin'];
const secrets = new Map<Permission, string>();
let service: TestService;
beforeAll(async () => {
  service = await startTestService();
  for (const permission of ranks) {
    const { secret } = await service.client.keys.create({ name: permission, permission });
    secrets.set(permission, secret!);
  }
});
afterAll(() => service.stop());

/** The code of the refusal; undefined if the call was not refused. */
async function codeOf({ method, path }: Route, authorization: string | undefined): Promise<string | undefined> {
  const response = await fetch(`${service.url}/api/v1${path.replaceAll(/\{\w+\}/g, 'none')}`, {
    method,
    headers: {
      ...(authorization && { authorization }),
      ...(method !== 'GET' && { 'content-type': 'application/json' }),
    },
    ...(method !== 'GET' && { body: '{}' }),
  });
  const text = await response.text();
  return response.ok ? undefined : (JSON.parse(text) as { code: string }).code;
}

test.each(Object.entries<Route>(routes))('%s accepts only callers with its permission', async (_, route) => {
  expect(await codeOf(route, undefined)).toBe('missing_token');
  for (const permission of ranks) {
    const code = await codeOf(route, `Bearer ${secrets.get(permission)}`);
    if (ranks.indexOf(permission) < ranks.indexOf(route.permission)) expect(code).toBe('insufficient_permission');
    else expect(['insufficient_permission', 'missing_token', 'invalid_token']).not.toContain(code);
  }
});
