import { schemaOfSchemas } from '../../ui/editor/schema-of-schemas.ts';
import { Select } from '../../ui/field.tsx';
import { ApproversField } from './approvers-field.tsx';
import { useDraft } from './draft.tsx';
import { DraftJson } from './fields.tsx';
import { isRecord } from './model.ts';

const policies = ['always', 'never', 'once', 'when', 'each'] as const;
type Policy = (typeof policies)[number];

const words: Record<Policy, string> = {
  always: 'Always',
  never: 'Never',
  once: 'Once per session: later calls run without asking',
  when: 'If the input matches a schema',
  each: 'Per tool of the server',
};

/** The policy of an approval: '' if it is unset; undefined if it is not a known policy. */
function policyOf(approval: unknown): Policy | '' | undefined {
  if (approval === undefined) return '';
  if (typeof approval === 'string') return policies.find((one) => one === approval);
  if (!isRecord(approval)) return undefined;
  if (isRule(approval)) return policyOf(approval.policy);
  return Object.keys(approval).length === 1 && isRecord(approval.when) ? 'when' : 'each';
}

/** A policy with its approvers. Tools of an MCP server may be called `policy` and `by` as well. */
function isRule(approval: unknown): approval is { policy: unknown; by: Record<string, unknown> } {
  if (!isRecord(approval) || !('policy' in approval) || !isRecord(approval.by)) return false;
  return Object.keys(approval).length === 2 && !('when' in approval.by) && !('policy' in approval.by);
}

/** When a call needs approval, in a word or two, for a tool's heading. */
export function policyWord(approval: unknown, byDefault: string): string {
  const policy = policyOf(approval);
  if (policy === undefined) return 'approval: see JSON';
  if (policy === '') return byDefault;
  return {
    always: 'needs approval',
    never: 'no approval',
    once: 'approval once per session',
    when: 'approval depends on the input',
    each: 'approval per tool',
  }[policy];
}

/** When a call needs approval. */
export function ApprovalField({
  path,
  byDefault,
  perTool,
}: {
  /** The path of the approval. */
  path: string;
  /** The default policy. */
  byDefault: string;
  /** Whether each of several tools may have its own policy. */
  perTool?: boolean;
}) {
  const draft = useDraft();
  const approval = draft.get(path);
  const rule = isRule(approval) ? approval : undefined;
  const whenPath = rule ? `${path}.policy.when` : `${path}.when`;
  const policy = draft.unreadText(whenPath) === undefined ? policyOf(approval) : 'when';
  const approvalFor: Record<Policy | '', unknown> = {
    '': undefined,
    always: 'always',
    never: 'never',
    once: 'once',
    when: { when: { type: 'object', properties: {}, required: [] } },
    each: {},
  };
  const options = policies
    .filter((one) => one !== 'each' || perTool)
    .map((one) => ({ value: one as string, label: words[one] }));
  return (
    <>
      <Select
        label="Require approval"
        data-path={path}
        value={policy ?? 'other'}
        error={policy === 'when' || policy === 'each' ? undefined : draft.errorAt(path, { within: true })}
        onChange={({ currentTarget }) => {
          const chosen = currentTarget.value as Policy | '';
          const hasApprovers = rule && ['always', 'once', 'when'].includes(chosen);
          draft.set(path, hasApprovers ? { ...rule, policy: approvalFor[chosen] } : approvalFor[chosen]);
        }}
        options={[
          { value: '', label: `Default: ${byDefault}` },
          ...options,
          ...(policy === undefined ? [{ value: 'other', label: 'Custom (see JSON)' }] : []),
        ]}
      />
      {policy === 'when' && (
        <DraftJson
          path={whenPath}
          label="Input schema for approval"
          schema={schemaOfSchemas}
          hint="A JSON Schema. Calls whose input matches it wait for approval. Other calls run."
        />
      )}
      {(policy === 'always' || policy === 'once' || policy === 'when') && (
        <ApproversField path={path} policy={rule ? rule.policy : approval} by={rule?.by} />
      )}
      {policy === 'each' && (
        <DraftJson
          path={path}
          label="Policy per tool"
          hint={
            <>
              JSON that maps the server’s own tool names to <code>"always"</code>, <code>"never"</code>,{' '}
              <code>"once"</code>, <code>{'{ "when": … }'}</code> or <code>{'{ "policy": …, "by": … }'}</code>.
            </>
          }
        />
      )}
    </>
  );
}
