// What a member or an invitation gives a person: the role, and which approvals they can decide.
import type { CanDecide, Role } from '@signalbox/client';
import { decidingRoles, unlimitedRoles } from '@signalbox/contract';
import { agentOption, useAgents } from '../../data/agent-names.ts';
import { useEnvironmentNames } from '../../data/environment-names.ts';
import { Choices } from '../../ui/field.tsx';
import { fieldError } from '../../ui/notice.tsx';
import { Restriction } from '../../ui/restriction.tsx';
import type { Access } from './access.ts';

/** Errors of these fields are shown beside them. */
export const accessFields = ['canDecide.agents', 'canDecide.environments'];

const roles: { value: Role; label: string; about: string }[] = [
  { value: 'viewer', label: 'viewer', about: 'can view everything except keys and secrets' },
  { value: 'approver', label: 'approver', about: 'can also decide approvals' },
  { value: 'member', label: 'member', about: 'can also run sessions, and change agents and webhooks' },
  { value: 'admin', label: 'admin', about: 'can also manage keys, secrets and people' },
  { value: 'owner', label: 'owner', about: 'can also add and remove owners' },
];

export function AccessFields({
  value,
  mayOwner,
  error,
  onChange,
}: {
  value: Access;
  mayOwner: boolean;
  error: unknown;
  onChange: (value: Access) => void;
}) {
  const environments = useEnvironmentNames();
  const agents = useAgents().data;
  const { role, canDecide } = value;
  const limit = (change: Partial<CanDecide>) => onChange({ role, canDecide: { ...canDecide, ...change } });
  const mayLimit = decidingRoles.some((one) => one === role) && !unlimitedRoles.includes(role);
  return (
    <>
      <Choices
        label="Role"
        value={role}
        onChange={(next) => onChange({ role: next, canDecide })}
        options={mayOwner ? roles : roles.filter((option) => option.value !== 'owner')}
      />
      {mayLimit && (
        <>
          <Restriction
            label="Environments to decide in"
            all="All environments"
            options={environments?.map((name) => ({ value: name, label: name }))}
            value={canDecide.environments}
            error={fieldError(error, 'canDecide.environments')}
            onChange={(next) => limit({ environments: next })}
          />
          <Restriction
            label="Agents to decide for"
            all="All agents"
            options={agents?.map(agentOption)}
            value={canDecide.agents}
            error={fieldError(error, 'canDecide.agents')}
            onChange={(next) => limit({ agents: next })}
          />
        </>
      )}
    </>
  );
}
