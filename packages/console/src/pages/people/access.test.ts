import type { CanDecide, Role } from '@signalbox/client';
import { expect, test } from 'vitest';
import { changesOf, everything } from './access.ts';

const staging: CanDecide = { agents: null, environments: ['staging'] };
const both: CanDecide = { agents: ['agt_a'], environments: ['staging'] };

test.each<[string, CanDecide | null, Role, CanDecide, object]>([
  ['another role', null, 'approver', everything, { role: 'approver' }],
  ['another role of a limited member', staging, 'viewer', { ...staging }, { role: 'viewer' }],
  ['a first limit', null, 'approver', staging, { role: 'approver', canDecide: staging }],
  ['one more limit', staging, 'member', both, { role: 'member', canDecide: both }],
  ['no limit any more', staging, 'member', everything, { role: 'member', canDecide: null }],
  ['a role without limits', staging, 'admin', staging, { role: 'admin', canDecide: null }],
  ['a role without limits for a member without', null, 'admin', staging, { role: 'admin' }],
])(
  'a change to %s sends what differs, and limits that someone else sets meanwhile stay',
  (_to, canDecide, role, wanted, body) => {
    expect(changesOf({ canDecide }, { role, canDecide: wanted })).toEqual(body);
  },
);
