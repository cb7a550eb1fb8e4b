import type { Agent } from '@signalbox/client';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { useApiMutation, useApiQuery, useOrganization } from '../../data/organization.tsx';
import { Button, ButtonLink } from '../../ui/button.tsx';
import { Missing } from '../../ui/empty-state.tsx';
import { IdChip } from '../../ui/id-chip.tsx';
import { Menu } from '../../ui/menu.tsx';
import { Notice } from '../../ui/notice.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { ExactTime, Time } from '../../ui/time.tsx';
import { useToast } from '../../ui/toast.tsx';
import { ArchiveDialog } from './archive-dialog.tsx';
import { ConflictDialog } from './conflict.tsx';
import { type Definition, definitionOf } from './definition.ts';
import { type Edits, useNewDraft } from './draft.tsx';
import { Editor, type View } from './editor.tsx';
import { forgetEdits, useKeep, useKeptEdits } from './kept-edits.ts';
import { saveVersion } from './saving.ts';
import { TryIt } from './try-it.tsx';
import './agents.css';

export function AgentPage() {
  const { organizationId, may } = useOrganization();
  const { agentId } = useParams({ from: '/$organizationId/agents/$agentId' });
  const query = useApiQuery(['agents', agentId], (client) => client.agents.get(agentId));
  const [archiving, setArchiving] = useState(false);
  const agent = query.data;
  return (
    <Page
      title={agent?.name ?? 'Agent'}
      about={
        agent && (
          <>
            Version {agent.version}, saved <Time at={agent.updatedAt} /> · <IdChip value={agentId} />
          </>
        )
      }
      actions={
        <>
          <ButtonLink to="/$organizationId/sessions" params={{ organizationId }} search={{ agentId }}>
            Sessions
          </ButtonLink>
          <ButtonLink to="/$organizationId/agents/$agentId/versions" params={{ organizationId, agentId }}>
            Versions
          </ButtonLink>
          <ButtonLink to="/$organizationId/playground" params={{ organizationId }} search={{ agent: agentId }}>
            Open in playground
          </ButtonLink>
          {agent && !agent.archivedAt && may('write') && (
            <Menu
              label="Other actions"
              items={[{ label: 'Archive', danger: true, onSelect: () => setArchiving(true) }]}
            />
          )}
        </>
      }
    >
      <Await query={query} missing={<Missing what="agent" to="/$organizationId/agents" params={{ organizationId }} />}>
        {(newest) => <SavedAgent newest={newest} key={agentId} />}
      </Await>
      {agent && archiving && <ArchiveDialog agent={agent} onClose={() => setArchiving(false)} />}
    </Page>
  );
}

function SavedAgent({ newest }: { newest: Agent }) {
  const { organizationId, may } = useOrganization();
  const { view, session } = useSearch({ from: '/$organizationId/agents/$agentId' });
  const navigate = useNavigate();
  const toast = useToast();
  const { agentId, archivedAt } = newest;
  const readOnly = !may('write') || archivedAt !== null;
  const { key, kept: stored } = useKeptEdits<{ seen: Agent; edits: Edits }>(agentId);
  const kept = readOnly ? undefined : stored;
  // The version that the user saw and is editing.
  const [seen, setSeen] = useState(kept?.seen ?? newest);
  const [comparing, setComparing] = useState<Agent>();
  const draft = useNewDraft(definitionOf(seen), kept?.edits);
  const changed = draft.differs(definitionOf(seen));
  useKeep(key, changed && !readOnly ? { seen, edits: draft.edits } : undefined);
  const update = useApiMutation(saveVersion, ['agents']);
  const isPassed = newest.version > seen.version;

  function take(agent: Agent) {
    setSeen(agent);
    draft.reset(definitionOf(agent));
    setComparing(undefined);
  }
  if (isPassed && !changed) take(newest);

  async function save(from: Agent, definition: Definition) {
    const result = await update.mutateAsync({ seen: from, definition });
    if ('newest' in result) return setComparing(result.newest);
    setSeen(result.saved);
    setComparing(undefined);
    draft.settle();
    toast(result.saved.version === from.version ? 'No changes to save' : `Saved as version ${result.saved.version}`);
  }
  const show = (next: { view?: View | undefined; session?: string | undefined }) =>
    void navigate({
      to: '/$organizationId/agents/$agentId',
      params: { organizationId, agentId },
      search: Object.fromEntries(Object.entries({ view, session, ...next }).filter(([, value]) => value)),
      replace: next.session !== undefined,
      resetScroll: false,
    });

  return (
    <>
      {archivedAt && (
        <Notice>
          <p>
            Archived on <ExactTime at={archivedAt} />. It accepts no new sessions or messages and can’t be changed.
          </p>
        </Notice>
      )}
      {!archivedAt && readOnly && (
        <Notice>
          <p>You can view this agent. You need the member role to change it.</p>
        </Notice>
      )}
      {isPassed && changed && (
        <Notice kind="warn" live title={`Version ${newest.version} was saved in the meantime`}>
          <p>Your changes are based on version {seen.version}. They are not lost.</p>
          <div>
            <Button small onClick={() => setComparing(newest)}>
              Show changes
            </Button>
          </div>
        </Notice>
      )}
      <Editor
        draft={draft}
        readOnly={readOnly}
        changed={!readOnly && changed}
        action="Save"
        state={changed ? 'Unsaved changes' : `Version ${seen.version} saved`}
        submit={() => save(seen, draft.value)}
        isRestored={kept !== undefined}
        onDiscard={() => {
          forgetEdits(key);
          take(newest);
        }}
        view={view}
        onView={(next) => show({ view: next })}
        tryIt={
          archivedAt ? (
            <p className="quiet">An archived agent can’t start new sessions.</p>
          ) : (
            <TryIt
              agent={{ agentId, version: Math.max(seen.version, newest.version) }}
              unsaved={changed}
              sessionId={session}
              onOpen={(sessionId) => show({ session: sessionId, view: 'try' })}
            />
          )
        }
      />
      {comparing && (
        <ConflictDialog
          seen={seen}
          newest={comparing}
          mine={draft.value}
          onTake={() => take(comparing)}
          onSave={() => save(comparing, draft.value)}
          onClose={() => setComparing(undefined)}
        />
      )}
    </>
  );
}
