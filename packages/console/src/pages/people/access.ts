// What a member or an invitation gives a person, as the service takes it.
import type { CanDecide, Member, Role } from '@signalbox/client';
import { unlimitedRoles } from '@signalbox/contract';

export interface Access {
  role: Role;
  canDecide: CanDecide;
}

export const everything: CanDecide = { agents: null, environments: null };

export function bodyOf({ role, canDecide }: Access) {
  const isLimited = !unlimitedRoles.includes(role) && (canDecide.agents ?? canDecide.environments) !== null;
  return { role, canDecide: isLimited ? canDecide : null };
}

/** Without limits that are as before: someone else may have changed them since, or deleted what they name. */
export function changesOf(before: Pick<Member, 'canDecide'>, access: Access) {
  const { role, canDecide } = bodyOf(access);
  return JSON.stringify(canDecide) === JSON.stringify(before.canDecide) ? { role } : { role, canDecide };
}
