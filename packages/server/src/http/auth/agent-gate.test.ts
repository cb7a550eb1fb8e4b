import { type Route, routes, scopes, unusableScopes } from '@signalbox/contract';
import { expect, test } from 'vitest';
import { agentReachOf } from './agent-gate.ts';
import { reachOf } from './environment-gate.ts';

const all = Object.entries<Route>(routes);

// A new route is either limited by what its input names, or it must be added here deliberately.
test('the routes that a key limited to some agents may call without naming anything of them are these', () => {
  const namesOf = (reach: string) => all.filter(([, route]) => agentReachOf(route) === reach).map(([name]) => name);
  expect(namesOf('open')).toEqual(['getMe', 'listEnvironments', 'uploadFile', 'previewSchedule', 'getOrganization']);
  expect(namesOf('own')).toEqual(['listAgents', 'resolveApprovals', 'claimWorkerTurn']);
  expect(namesOf('ownKey')).toEqual(['rotateKey', 'deleteOldSecret', 'deleteKey']);
});

test('the contract names the scopes that a limited key can’t use', () => {
  /** For a scope for reading, whether it can read; for any other, whether it can change something. */
  const isUsable = (scope: string, reach: (route: Route) => string) =>
    all.some(
      ([, route]) =>
        route.scope === scope &&
        (scope.endsWith(':read') || route.method !== 'GET') &&
        !['closed', 'ownKey'].includes(reach(route)) &&
        !route.byPerson,
    );
  expect(scopes.filter((scope) => !isUsable(scope, agentReachOf))).toEqual(unusableScopes.agents);
  expect(scopes.filter((scope) => !isUsable(scope, reachOf))).toEqual(unusableScopes.environments);
});
