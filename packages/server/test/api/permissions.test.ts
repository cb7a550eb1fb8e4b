// Which caller may use which route: every route of the contract, without a key and with a key of each permission.
import { type Permission, permissionOf, type Route, type RouteName, routes } from '@signalbox/contract';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';

/** The routes that existed before there were scopes, by the permission that they needed. */
const before: Readonly<Record<Permission, string>> = {
  read: 'listSessions getSession listMessages listTurns getOperation listChunks streamSession listWebhookSubscriptions getWebhookSubscription listReceivedWebhooks listDeliveries getDelivery listEnvironments listFiles getFile getFileContent listSchedules getSchedule listScheduleRuns getOverview getMe listApprovals getApproval listEvents exportEvents getEvent getUsage listAgents getAgent listAgentVersions',
  write:
    'openSession updateSession deleteSession forkSession sendMessage sendToolResult interruptSession retrySession compactSession closeSession cancelSession createWebhookSubscription updateWebhookSubscription deleteWebhookSubscription rotateWebhookSecret testWebhookSubscription recoverDeliveries resendDelivery createEnvironment deleteEnvironment uploadFile deleteFile createSchedule updateSchedule deleteSchedule resolveApproval claimWorkerTurn heartbeatWorkerTurn appendToWorkerTurn completeWorkerTurn releaseWorkerTurn createAgent updateAgent archiveAgent',
  admin:
    'listMembers updateMember removeMember resetPassword listInvitations createInvitation deleteInvitation updateOrganization updateEnvironment listSecrets setSecret deleteSecret createKey listKeys getKey updateKey rotateKey deleteKey',
};
const neededBefore = new Map(
  Object.entries(before).flatMap(([permission, names]) =>
    names.split(' ').map((name) => [name, permission as Permission]),
  ),
);

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

test.each(Object.entries<Route>(routes))('%s accepts only callers with its permission', async (name, route) => {
  const needed = neededBefore.get(name) ?? permissionOf(route);
  expect(await codeOf(route, undefined)).toBe('missing_token');
  for (const permission of ranks) {
    const code = await codeOf(route, `Bearer ${secrets.get(permission)}`);
    if (ranks.indexOf(permission) < ranks.indexOf(needed)) expect(code).toBe('insufficient_permission');
    else expect(['insufficient_permission', 'missing_token', 'invalid_token']).not.toContain(code);
  }
});

test('every route that existed before there were scopes still needs the permission that it needed', () => {
  for (const [name, permission] of neededBefore)
    expect([name, permissionOf(routes[name as RouteName])]).toEqual([name, permission]);
});
