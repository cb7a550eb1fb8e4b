import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useAgents } from '../../agent-names.ts';
import { useEnvironmentNames } from '../../environment-names.ts';
import { useApiMutation, useOrganization } from '../../organization.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { Checkbox, Select, TextArea, TextField } from '../../ui/field.tsx';
import { MetadataField, parseMetadata } from '../../ui/metadata.tsx';
import { fieldError, Notice } from '../../ui/notice.tsx';
import { AttachButton, type Attachment, AttachmentList, contentOf, useAttachments } from './attachments.tsx';
import { BudgetFields, budgetTexts, parseBudget } from './budget-fields.tsx';

/** Opens a session and its page. */
export function NewSession({ onClose, agentId: given }: { onClose: () => void; agentId?: string }) {
  const { organizationId } = useOrganization();
  const navigate = useNavigate();
  const agents = (useAgents().data ?? []).filter(({ archivedAt }) => archivedAt === null);
  const environments = useEnvironmentNames() ?? [];
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
  // Not the production environment by default.
  const environment =
    chosenEnvironment || (environments.find((name) => name !== 'production') ?? environments[0] ?? '');
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
    ['sessions', 'overview'],
  );
  const limits = parseBudget(budget);
  const name = endUserName.trim();
  const endUser = endUserId.trim() !== '' && { id: endUserId.trim(), ...(name !== '' && { name }) };
  const said = (path: string) => fieldError(open.error, path);

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
      {agents.length === 0 && (
        <Notice kind="warn">
          <p>There are no agents yet. Create one first.</p>
        </Notice>
      )}
      <Select
        label="Agent"
        value={agentId}
        error={said('agentId')}
        onChange={(event) => setAgent(event.currentTarget.value)}
        options={agents.map((agent) => ({ value: agent.agentId, label: agent.name }))}
      />
      <Select
        label="Environment"
        value={environment}
        error={said('environment')}
        hint={attachments.length > 0 ? 'Files belong to an environment. Remove them to choose another.' : undefined}
        disabled={attachments.length > 0}
        onChange={(event) => setEnvironment(event.currentTarget.value)}
        options={environments.map((value) => ({ value, label: value }))}
      />
      <div className="stack tight first-message" data-over={files.isOver || undefined} {...files.dropTarget}>
        <TextArea
          label="First message"
          hint="Leave empty to open the session without starting a turn. Drop or paste files to attach them."
          value={input}
          error={said('input')}
          onChange={(event) => setInput(event.currentTarget.value)}
        />
        <AttachmentList attachments={attachments} onRemove={files.remove} />
        <div className="row">
          <AttachButton onFiles={files.add} disabled={environment === '' || open.isPending} />
        </div>
      </div>
      <Checkbox
        label="Close after the first turn"
        checked={closeOnIdle}
        onChange={(event) => setCloseOnIdle(event.currentTarget.checked)}
      />
      <details>
        <summary>More options: end user, budget and metadata</summary>
        <div className="stack">
          <div className="columns">
            <TextField
              label="End user"
              hint="Your own id of the person that the session is for."
              maxLength={200}
              value={endUserId}
              error={said('endUser.id') ?? said('endUser')}
              onChange={(event) => setEndUserId(event.currentTarget.value)}
            />
            <TextField
              label="Name of the end user"
              maxLength={200}
              value={endUserName}
              error={said('endUser.name')}
              onChange={(event) => setEndUserName(event.currentTarget.value)}
            />
          </div>
          <BudgetFields value={budget} onChange={setBudget} said={said} />
          <MetadataField value={metadata} onChange={setMetadata} error={metadataError ?? said('metadata')} />
        </div>
      </details>
    </FormDialog>
  );
}
