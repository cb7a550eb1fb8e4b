// An agent as a form. Every field is bound to a path of the draft; fields that the form does not have are in the JSON next to it.
import { agentDefaults } from '@signalbox/contract';
import type { ReactNode } from 'react';
import { counted } from '../../lib/text-format.ts';
import { schemaOfOutputs } from '../../ui/editor/schema-of-schemas.ts';
import { duration } from '../../ui/time.tsx';
import type { Definition } from './definition.ts';
import { useDraft } from './draft.tsx';
import {
  DraftCheckbox,
  DraftJson,
  DraftMarkdown,
  DraftNumber,
  DraftSelect,
  DraftText,
  FormContext,
} from './fields.tsx';
import { Folded } from './folded.tsx';
import { MissingSecrets } from './missing-secrets.tsx';
import { isRecord } from './model.ts';
import { ModelForm } from './model-form.tsx';
import { SchemaFromExample } from './schema-from-example.tsx';
import { ToolsForm } from './tools-form.tsx';

export function AgentForm({ readOnly }: { readOnly: boolean }) {
  return (
    <FormContext value={{ isReadOnly: readOnly }}>
      <fieldset className="stack agent-form" disabled={readOnly} aria-label="Agent">
        <MissingSecrets />
        <Section title="Name and purpose">
          <DraftText path="name" label="Name" />
          <DraftText path="description" label="Description" hint="For people. The model doesn’t see it." />
        </Section>
        <Section title="Model">
          <ModelForm />
        </Section>
        <Section title="Instructions">
          <DraftMarkdown
            path="instructions"
            label="Instructions"
            quiet
            lines={10}
            mostLines={32}
            readOnly={readOnly}
            placeholder="What the agent should do, and how."
            hint="The system prompt, as Markdown."
          />
        </Section>
        <Section title="Tools">
          <ToolsForm readOnly={readOnly} />
        </Section>
        <FoldedSection title="Limits" fields={['limits']} summary={limitsText}>
          <LimitsForm />
        </FoldedSection>
        <FoldedSection title="Output and metadata" fields={outputFields} summary={outputText}>
          <OutputForm />
        </FoldedSection>
      </fieldset>
    </FormContext>
  );
}

const outputFields = ['showReasoning', 'showToolInput', 'outputSchema', 'metadata'];

function OutputForm() {
  return (
    <>
      <DraftCheckbox
        path="showReasoning"
        label="Show reasoning"
        hint="What the model thinks before it responds, to everyone who reads its sessions."
      />
      <DraftCheckbox
        path="showToolInput"
        label="Show tool input early"
        hint="While the model writes it, before the call."
      />
      <DraftJson
        path="outputSchema"
        label="Output schema"
        schema={schemaOfOutputs}
        hint={
          <>
            A JSON Schema that the model’s response must match. Leave empty or <code>null</code> for text.
          </>
        }
      />
      <SchemaFromExample path="outputSchema" label="output schema" />
      <DraftJson
        path="metadata"
        label="Metadata"
        lines={3}
        hint={
          <>
            Your own values, such as <code>{'{ "team": "support" }'}</code>.
          </>
        }
      />
    </>
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

/** A section that most agents leave as it is. Closed, its line says what was changed. */
function FoldedSection({
  title,
  fields,
  summary,
  children,
}: {
  title: string;
  fields: readonly string[];
  summary: (definition: Definition) => string;
  children: ReactNode;
}) {
  return (
    <section className="card" aria-label={title}>
      <Folded title={<h2>{title}</h2>} fields={fields} summary={summary(useDraft().value)}>
        {children}
      </Folded>
    </section>
  );
}

function limitsText({ limits }: Definition): string {
  if (!isRecord(limits)) return '';
  const { maxStepsPerTurn: steps, turnTimeoutSeconds: seconds } = { ...agentDefaults.limits, ...limits };
  const changed = Object.entries(limits).filter(
    ([field, value]) => value !== agentDefaults.limits[field as keyof typeof agentDefaults.limits],
  );
  const turn = `${steps} steps and ${typeof seconds === 'number' ? duration(seconds * 1000) : '–'} a turn`;
  return changed.length === 0 ? `Defaults: ${turn}` : `${turn} · ${counted(changed.length, 'limit')} set`;
}

function outputText({ outputSchema, showReasoning, showToolInput, metadata }: Definition): string {
  const keys = isRecord(metadata) ? Object.keys(metadata).length : 0;
  return [
    outputSchema ? 'JSON output' : 'Text output',
    showReasoning === true && 'shows reasoning',
    showToolInput === true && 'shows tool input early',
    keys > 0 && counted(keys, 'metadata value'),
  ]
    .filter(Boolean)
    .join(' · ');
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
        <DraftNumber
          path="limits.maxStepsPerTurn"
          label="Max steps per turn"
          hint={`Model calls. Default: ${agentDefaults.limits.maxStepsPerTurn}.`}
        />
        <DraftNumber
          path="limits.maxOutputTokens"
          label="Max output tokens per step"
          nullable
          hint="Leave empty for the model’s own limit."
        />
        <DraftNumber
          path="limits.continueWhenCut"
          label="Continue cut responses"
          hint="How many times per turn the model continues a response that reached its token limit. Each time is a step."
        />
        <DraftNumber
          path="limits.turnTimeoutSeconds"
          label="Turn timeout (seconds)"
          hint={`${spoken('turnTimeoutSeconds', `Default: ${agentDefaults.limits.turnTimeoutSeconds}.`)} Time spent waiting doesn’t count.`}
        />
        <DraftNumber
          path="limits.modelOutageSeconds"
          label="Model outage (seconds)"
          hint={`${spoken('modelOutageSeconds', `Default: ${agentDefaults.limits.modelOutageSeconds}.`)} How long a turn waits for models that are unavailable.`}
        />
        <DraftNumber
          path="limits.approvalTimeoutSeconds"
          label="Approval timeout (seconds)"
          nullable
          hint={spoken('approvalTimeoutSeconds', 'Leave empty for no timeout.')}
        />
        <DraftNumber
          path="limits.compactAtTokens"
          label="Compact at (tokens)"
          nullable
          hint="From this length on, the model gets a summary instead of older messages. Leave empty for three quarters of its context window."
        />
      </div>
      <DraftSelect
        path="limits.onApprovalTimeout"
        label="If an approval times out"
        options={[
          { value: '', label: 'Default: deny the call' },
          { value: 'deny', label: 'Deny the call and continue the turn' },
          { value: 'cancel', label: 'Cancel the session' },
        ]}
      />
    </>
  );
}
