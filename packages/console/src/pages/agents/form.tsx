// An Agent as a form. Every field is a place of the draft; what the form has no field for stands in the JSON beside it.
import type { ReactNode } from 'react';
import { duration } from '../../ui/time.tsx';
import { useDraft } from './draft.tsx';
import { DraftJson, DraftNumber, DraftSelect, DraftText } from './fields.tsx';
import { ModelForm } from './model-form.tsx';
import { ToolsForm } from './tools-form.tsx';

export function AgentForm({ readOnly }: { readOnly: boolean }) {
  return (
    <fieldset className="stack agent-form" disabled={readOnly} aria-label="Agent">
      <Section title="Name and purpose">
        <DraftText path="name" label="Name" />
        <DraftText path="description" label="Description" lines={2} hint="For people; the model does not see it." />
      </Section>
      <Section title="Model">
        <ModelForm />
      </Section>
      <Section title="Instructions">
        <DraftText
          path="instructions"
          label="Instructions"
          lines={10}
          hint="What the model is told before everything else."
        />
      </Section>
      <Section title="Tools">
        <ToolsForm readOnly={readOnly} />
      </Section>
      <Section title="Limits">
        <LimitsForm />
      </Section>
      <Section title="Answer and metadata">
        <DraftJson
          path="outputSchema"
          label="Output schema"
          lines={4}
          hint={
            <>
              A JSON Schema that the answer of a turn must match. Empty or <code>null</code>: text.
            </>
          }
        />
        <DraftJson
          path="metadata"
          label="Metadata"
          lines={3}
          hint={
            <>
              Values of your own, such as <code>{'{ "team": "support" }'}</code>.
            </>
          }
        />
      </Section>
    </fieldset>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="card" aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

function LimitsForm() {
  const draft = useDraft();
  const spoken = (field: string, empty: string) => {
    const seconds = draft.get(`limits.${field}`);
    return typeof seconds === 'number' && seconds >= 60 ? `= ${duration(seconds * 1000)}.` : empty;
  };
  return (
    <>
      <div className="columns">
        <DraftNumber path="limits.maxStepsPerTurn" label="Steps of a turn" hint="Calls of the model. Empty: 20." />
        <DraftNumber
          path="limits.maxOutputTokens"
          label="Output tokens of a step"
          nullable
          hint="Empty: as many as the model gives."
        />
        <DraftNumber
          path="limits.turnTimeoutSeconds"
          label="Seconds of a turn"
          hint={`${spoken('turnTimeoutSeconds', 'Empty: 600.')} Waiting for people does not count.`}
        />
        <DraftNumber
          path="limits.approvalTimeoutSeconds"
          label="Seconds to decide on an approval"
          nullable
          hint={spoken('approvalTimeoutSeconds', 'Empty: for ever.')}
        />
      </div>
      <DraftSelect
        path="limits.onApprovalTimeout"
        label="When nobody decided in time"
        options={[
          { value: '', label: 'As is usual: the call is denied' },
          { value: 'deny', label: 'The call is denied, and the turn goes on' },
          { value: 'cancel', label: 'The Session is cancelled' },
        ]}
      />
    </>
  );
}
