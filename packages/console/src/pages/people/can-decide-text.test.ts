import type { CanDecide, Role } from '@signalbox/client';
import { expect, test } from 'vitest';
import { canDecideText } from './can-decide-text.ts';

test.each<[Role, CanDecide | null, string]>([
  ['viewer', null, 'none'],
  ['viewer', { agents: ['a'], environments: null }, 'none'],
  ['approver', null, 'all'],
  ['owner', null, 'all'],
  ['member', { agents: ['a', 'b'], environments: null }, 'Agent a and Agent b'],
  ['approver', { agents: null, environments: ['production', 'staging'] }, 'in production and staging'],
  ['approver', { agents: ['a'], environments: ['staging'] }, 'Agent a, in staging'],
])('a %s with the limits %j decides: %s', (role, canDecide, text) => {
  expect(canDecideText(role, canDecide, (id) => `Agent ${id}`)).toBe(text);
});
