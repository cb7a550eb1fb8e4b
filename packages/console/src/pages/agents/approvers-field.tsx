import type { Approvers } from '@signalbox/client';
import { decidingRoles } from '@signalbox/contract';
import { Checkbox, Select } from '../../ui/field.tsx';
import { approversText } from '../approvals/approvers-text.ts';
import { useDraft } from './draft.tsx';

const counts = [1, 2, 3, 4, 5];

/** Who may decide the approvals of a tool. `policy`: which calls need one; `by`: undefined if the tool does not say who may decide. */
export function ApproversField({
  path,
  policy,
  by = {},
}: {
  path: string;
  policy: unknown;
  by?: Approvers | undefined;
}) {
  const draft = useDraft();
  /** Without approvers, the approval is its policy alone. */
  function put(change: { [field in keyof Approvers]: Approvers[field] | undefined }) {
    const next = Object.entries({ ...by, ...change }).filter(([, value]) => value !== undefined);
    draft.set(path, next.length === 0 ? policy : { policy, by: Object.fromEntries(next) });
  }
  const { people, roles = [], keys, endUser, notRequester, count = 1 } = by;
  const toggle = (field: 'people' | 'keys' | 'endUser' | 'notRequester', checked: boolean) =>
    put({ [field]: checked || undefined, ...(field === 'people' && checked && { roles: undefined }) });
  return (
    <details className="approvers">
      <summary>
        Who may decide <span className="quiet small">{approversText(by)}</span>
      </summary>
      <fieldset className="stack tight" data-path={`${path}.by`}>
        <legend className="quiet small">
          If you choose none, all people and API keys that can decide approvals may.
        </legend>
        <Checkbox
          label="People"
          checked={people === true}
          onChange={({ currentTarget }) => toggle('people', currentTarget.checked)}
        />
        {decidingRoles.map((role) => (
          <Checkbox
            key={role}
            label={`People with the role ${role}`}
            checked={roles.includes(role)}
            onChange={({ currentTarget }) => {
              const next = decidingRoles.filter((one) => (one === role ? currentTarget.checked : roles.includes(one)));
              put({ roles: next.length > 0 ? next : undefined, people: undefined });
            }}
          />
        ))}
        <Checkbox
          label="API keys"
          checked={keys === true}
          onChange={({ currentTarget }) => toggle('keys', currentTarget.checked)}
        />
        <Checkbox
          label="The session’s end user, in your own page"
          checked={endUser === true}
          onChange={({ currentTarget }) => toggle('endUser', currentTarget.checked)}
        />
        <Checkbox
          label="Not the requester: who opened the session or sent it input"
          checked={notRequester === true}
          onChange={({ currentTarget }) => toggle('notRequester', currentTarget.checked)}
        />
        <Select
          label="Approvals needed"
          hint="From different approvers. One denial is final."
          value={String(count)}
          options={counts.map((value) => ({ value: String(value), label: String(value) }))}
          onChange={({ currentTarget }) => {
            const value = Number(currentTarget.value);
            put({ count: value === 1 ? undefined : value });
          }}
          error={draft.errorAt(`${path}.by`, { within: true })}
        />
      </fieldset>
    </details>
  );
}
