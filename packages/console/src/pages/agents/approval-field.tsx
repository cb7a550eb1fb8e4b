import { Select } from '../../ui/field.tsx';
import { useDraft } from './draft.tsx';
import { DraftJson } from './fields.tsx';
import { isRecord } from './model.ts';

const policies = ['always', 'never', 'once', 'when', 'each'] as const;
type Policy = (typeof policies)[number];

const words: Record<Policy, string> = {
  always: 'Before every call',
  never: 'Never',
  once: 'Once in a Session: after a yes, later calls run',
  when: 'Where the input matches a schema',
  each: 'Different for each of the server’s tools',
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
  if (policy === undefined) return 'asks: see its JSON';
  if (policy === '') return byDefault;
  return { always: 'always asks', never: 'never asks', once: 'asks once', when: 'asks at times', each: 'asks by tool' }[
    policy
  ];
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
        label="A person is asked"
        data-path={path}
        value={policy ?? 'other'}
        error={policy === 'when' || policy === 'each' ? undefined : draft.errorAt(path, { within: true })}
        onChange={({ currentTarget }) => draft.set(path, become[currentTarget.value as Policy | ''])}
        options={[
          { value: '', label: `As is usual for it: ${byDefault}` },
          ...options,
          ...(policy === undefined ? [{ value: 'other', label: 'As the JSON says' }] : []),
        ]}
      />
      {policy === 'when' && (
        <DraftJson
          path={`${path}.when`}
          label="Where the input matches"
          hint="A JSON Schema of the input. Calls that it matches wait for a person; others run."
        />
      )}
      {policy === 'each' && (
        <DraftJson
          path={path}
          label="A policy for each tool"
          hint={
            <>
              JSON: the server’s own name of a tool, and <code>"always"</code>, <code>"never"</code>,{' '}
              <code>"once"</code> or <code>{'{ "when": … }'}</code>.
            </>
          }
        />
      )}
    </>
  );
}
