import { type Route, routes } from '@signalbox/contract';
import { expect, test } from 'vitest';
import { reachOf } from './environment-gate.ts';

const namesOf = (reach: string) =>
  Object.entries(routes as Record<string, Route>)
    // No key may call what is for people.
    .filter(([, route]) => reachOf(route) === reach && !route.byPerson)
    .map(([name]) => name);

// A new route is either limited by what its input names, or it must be added here deliberately.
test('the routes outside environments that a limited key may call are these', () => {
  expect(namesOf('open')).toEqual([
    'getMe',
    'listKeys',
    'getKey',
    'listAgents',
    'getAgent',
    'listAgentVersions',
    'listEnvironments',
    // Each approval enters the gate of resolveApproval.
    'resolveApprovals',
    'previewSchedule',
    'getOrganization',
    'getEvent',
  ]);
  expect(namesOf('ownKey')).toEqual(['rotateKey', 'deleteOldSecret', 'deleteKey']);
  expect(namesOf('closed')).toEqual([
    'createKey',
    'updateKey',
    'createAgent',
    'updateAgent',
    'archiveAgent',
    // They name an environment, and do what changing an agent could.
    'listModels',
    'testTool',
    'listMcpTools',
    'createEnvironment',
    'getEndUser',
    'eraseEndUser',
    'deleteBudget',
    'setOrganization',
  ]);
});
