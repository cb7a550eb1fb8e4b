import { Select } from '../../ui/field.tsx';
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

/** What an approval says: '' where it says nothing; undefined where that is none of the policies. */
function policyOf(approval: unknown): Policy | '' | undefined {
  if (approval === undefined) return '';
  if (typeof approval === 'string') return policies.find((one) => one === approval);
  if (!isRecord(approval)) return undefined;
  return Object.keys(approval).length === 1 && isRecord(approval.when) ? 'when' : 'each';
}

/** When a person is asked, in a word or two, for the head of a tool. */
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

/** When a person is asked before a call runs. */
export function ApprovalField({
  path,
  byDefault,
  perTool,
}: {
  /** Of the approval. */
  path: string;
  /** What holds where nothing is said. */
  byDefault: string;
  /** Whether there may be a policy for each of several tools. */
  perTool?: boolean;
}) {
  const draft = useDraft();
  const approval = draft.get(path);
  const policy = draft.unreadText(`${path}.when`) === undefined ? policyOf(approval) : 'when';
  const become: Record<Policy | '', unknown> = {
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
        onChange={({ currentTarget }) => draft.set(path, become[currentTarget.value as Policy | ''])}
        options={[
          { value: '', label: `Default: ${byDefault}` },
          ...options,
          ...(policy === undefined ? [{ value: 'other', label: 'Custom (see JSON)' }] : []),
        ]}
      />
      {policy === 'when' && (
        <DraftJson
          path={`${path}.when`}
          label="Input schema for approval"
          hint="A JSON Schema. Calls whose input matches it wait for approval. Other calls run."
        />
      )}
      {policy === 'each' && (
        <DraftJson
          path={path}
          label="Policy per tool"
          hint={
            <>
              JSON that maps the server’s own tool names to <code>"always"</code>, <code>"never"</code>,{' '}
              <code>"once"</code> or <code>{'{ "when": … }'}</code>.
            </>
          }
        />
      )}
    </>
  );
}
