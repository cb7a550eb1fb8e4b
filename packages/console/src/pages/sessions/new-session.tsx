import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { agentOption, useAgents } from '../../data/agent-names.ts';
import { useEnvironment } from '../../data/environment.ts';
import { preferredEnvironment, useEnvironmentNames } from '../../data/environment-names.ts';
import { useApiMutation, useOrganization } from '../../data/organization.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { Disclosure } from '../../ui/disclosure.tsx';
import { Checkbox, Field, Select, TextField } from '../../ui/field.tsx';
import { MetadataField, parseMetadata } from '../../ui/metadata.tsx';
import { fieldError, Notice } from '../../ui/notice.tsx';
import { AttachButton, type Attachment, AttachmentList, contentOf, useAttachments } from './attachments.tsx';
import { BudgetFields, budgetTexts, parseBudget } from './budget-fields.tsx';
import './new-session.css';

/** Opens a session and its page. */
export function NewSession({ onClose, agentId: given }: { onClose: () => void; agentId?: string }) {
  const { organizationId } = useOrganization();
  const navigate = useNavigate();
  const { data: all } = useAgents();
  const agents = (all ?? []).filter(({ archivedAt }) => archivedAt === null);
  const hasNoAgents = all !== undefined && agents.length === 0;
  const environments = useEnvironmentNames() ?? [];
  const ofPage = useEnvironment();
  const [chosenAgent, setAgent] = useState(given ?? '');
  const [chosenEnvironment, setEnvironment] = useState('');
  const [input, setInput] = useState('');
  const [attachments, setAttachments] = useState<readonly Attachment[]>([]);
  const [closeOnIdle, setCloseOnIdle] = useState(false);
  const [budget, setBudget] = useState(() => budgetTexts(null));
  const [endUserId, setEndUserId] = useState('');
  const [endUserName, setEndUserName] = useState('');
  const [metadata, setMetadata] = useState('');
  const [metadataError, setMetadataError] = useState<string>();
  const agentId = chosenAgent || (agents[0]?.agentId ?? '');
  const environment = chosenEnvironment || preferredEnvironment(environments, ofPage);
  const files = useAttachments(environment, attachments, setAttachments);
  const isUploading = attachments.some(({ fileId, error }) => !fileId && !error);
  const isEmpty = input.trim() === '' && !attachments.some(({ fileId }) => fileId);
  const open = useApiMutation(
    (client, _: undefined) =>
      client.sessions.open({
        agentId,
        environment,
        closeOnIdle,
        metadata: parseMetadata(metadata),
        ...(!isEmpty && { input: contentOf({ text: input, attachments }) }),
        ...(limits && { budget: limits }),
        ...(endUser && { endUser }),
      }),
    ['sessions'],
  );
  const limits = parseBudget(budget);
  const name = endUserName.trim();
  const endUser = endUserId.trim() !== '' && { id: endUserId.trim(), ...(name !== '' && { name }) };
  const errorFor = (path: string) => fieldError(open.error, path);

  async function submit() {
    if (isUploading) throw new Error('Wait until the files are uploaded.');
    setMetadataError(undefined);
    try {
      parseMetadata(metadata);
    } catch (error) {
      setMetadataError((error as Error).message);
      throw error;
    }
    const { sessionId } = await open.mutateAsync(undefined);
    await navigate({ to: '/$organizationId/sessions/$sessionId', params: { organizationId, sessionId } });
  }

  return (
    <FormDialog
      title="New session"
      action="Start session"
      beside={['agentId', 'environment', 'input', 'endUser', 'budget', 'metadata']}
      submit={submit}
      onClose={onClose}
    >
      {hasNoAgents && (
        <Notice kind="warn">
          <p>
            There are no agents yet.{' '}
            <Link to="/$organizationId/agents/new" params={{ organizationId }}>
              Create one
            </Link>{' '}
            first.
          </p>
        </Notice>
      )}
      <div className="agent-and-environment">
        <Select
          label="Agent"
          value={agentId}
          error={errorFor('agentId')}
          onChange={(event) => setAgent(event.currentTarget.value)}
          options={agents.map(agentOption)}
        />
        <Select
          label="Environment"
          value={environment}
          error={errorFor('environment')}
          hint={attachments.length > 0 ? 'Files belong to an environment. Remove them to choose another.' : undefined}
          disabled={attachments.length > 0}
          onChange={(event) => setEnvironment(event.currentTarget.value)}
          options={environments.map((value) => ({ value, label: value }))}
        />
      </div>
      <Field
        label="First message"
        hint="Optional. Without one, the session waits for a message."
        error={errorFor('input')}
      >
        {(ties) => (
          <div className="message-box" data-over={files.isOver || undefined} {...files.dropTarget}>
            <textarea
              {...ties}
              className="input"
              dir="auto"
              rows={4}
              maxLength={500_000}
              title="Drop or paste files to attach them."
              value={input}
              onChange={(event) => setInput(event.currentTarget.value)}
            />
            <AttachmentList attachments={attachments} onRemove={files.remove} />
            <AttachButton onFiles={files.add} disabled={environment === '' || open.isPending} />
          </div>
        )}
      </Field>
      <Checkbox
        label={
          <>
            Close after the first turn <span className="quiet small">The session then accepts no more messages.</span>
          </>
        }
        checked={closeOnIdle}
        onChange={(event) => setCloseOnIdle(event.currentTarget.checked)}
      />
      <Disclosure title="More options" summary="End user, budget, metadata">
        <div className="columns small-fields">
          <TextField
            label="End user"
            hint="Your own ID of the person."
            maxLength={200}
            value={endUserId}
            error={errorFor('endUser.id') ?? errorFor('endUser')}
            onChange={(event) => setEndUserId(event.currentTarget.value)}
          />
          <TextField
            label="Name of the end user"
            maxLength={200}
            value={endUserName}
            error={errorFor('endUser.name')}
            onChange={(event) => setEndUserName(event.currentTarget.value)}
          />
        </div>
        <BudgetFields value={budget} onChange={setBudget} errorFor={errorFor} />
        <MetadataField value={metadata} onChange={setMetadata} error={metadataError ?? errorFor('metadata')} />
      </Disclosure>
    </FormDialog>
  );
}
