import type { CanDecide, Role } from '@signalbox/client';
import { decidingRoles } from '@signalbox/contract';

const and = new Intl.ListFormat('en', { type: 'conjunction' });

/** Which approvals a member can decide, such as “Refund desk, in staging”. */
export function canDecideText(role: Role, canDecide: CanDecide | null, nameOf: (agentId: string) => string): string {
  if (!decidingRoles.some((one) => one === role)) return 'none';
  if (canDecide === null) return 'all';
  const { agents, environments } = canDecide;
  return [agents && and.format(agents.map(nameOf)), environments && `in ${and.format(environments)}`]
    .filter((part) => part !== null)
    .join(', ');
}
