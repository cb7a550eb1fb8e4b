// A session of the agent next to its definition.
import type { Environment } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { useApiMutation, useApiQuery, useOrganization } from '../../organization.tsx';
import { Button } from '../../ui/button.tsx';
import { Select, TextArea } from '../../ui/field.tsx';
import { ErrorNotice, fieldError, Notice } from '../../ui/notice.tsx';
import { Await } from '../../ui/page.tsx';
import { LazySessionView } from '../sessions/lazy-session-view.tsx';

/** `version`: the newest saved one. `unsaved`: whether the draft has changes that are not in it. */
export function TryIt({
  agentId,
  version,
  unsaved,
  sessionId,
  onOpen,
}: {
  agentId: string;
  version: number;
  unsaved: boolean;
  sessionId: string | undefined;
  /** Called with the id of an opened session, or undefined to start another one. */
  onOpen: (sessionId: string | undefined) => void;
}) {
  const { organizationId, may } = useOrganization();
  const panel = useRef<HTMLDivElement>(null);
  const shown = useRef(sessionId);
  useEffect(() => {
    // The form was replaced by the session, or the session by the form, so the focused element is gone.
    if (shown.current !== sessionId) panel.current?.focus();
    shown.current = sessionId;
  }, [sessionId]);
  const environments = useApiQuery(['environments', 'choice'], (client) => client.environments.list({ limit: MOST }));
  return (
    <div className="stack" ref={panel} tabIndex={-1}>
      {unsaved && (
        <Notice kind="warn">
          <p>Sessions run version {version}. Save your changes to try them.</p>
        </Notice>
      )}
      {sessionId ? (
        <>
          <LazySessionView sessionId={sessionId} />
          <div className="row">
            <Button small onClick={() => onOpen(undefined)}>
              New session
            </Button>
            <Link to="/$organizationId/sessions/$sessionId" params={{ organizationId, sessionId }}>
              Open session page
            </Link>
          </div>
        </>
      ) : may('write') ? (
        <Await query={environments}>
          {({ data }) => <OpenForm agentId={agentId} environments={data} onOpen={onOpen} />}
        </Await>
      ) : (
        <p className="quiet">You need the member role to start sessions.</p>
      )}
    </div>
  );
}

// One page of the list.
const MOST = 100;

function OpenForm({
  agentId,
  environments,
  onOpen,
}: {
  agentId: string;
  environments: readonly Environment[];
  onOpen: (sessionId: string) => void;
}) {
  const [environment, setEnvironment] = useState(
    () => (environments.find(({ name }) => name === 'staging') ?? environments[0])?.name ?? '',
  );
  const [input, setInput] = useState('');
  const open = useApiMutation(
    (client, body: { environment: string; input: string }) => client.sessions.open({ agentId, ...body }),
    ['sessions', 'overview'],
  );
  async function submit(event: FormEvent) {
    event.preventDefault();
    if (open.isPending) return;
    const { sessionId } = await open.mutateAsync({ environment, input });
    onOpen(sessionId);
  }
  return (
    <form className="stack" onSubmit={(event) => void submit(event).catch(() => {})} noValidate>
      <p className="quiet small">This runs a real session with real tools and secrets. It appears under Sessions.</p>
      <Select
        label="Environment"
        value={environment}
        error={fieldError(open.error, 'environment')}
        onChange={({ currentTarget }) => setEnvironment(currentTarget.value)}
        options={environments.map(({ name }) => ({ value: name, label: name }))}
      />
      <TextArea
        label="Message"
        rows={3}
        value={input}
        error={fieldError(open.error, 'input')}
        onChange={({ currentTarget }) => setInput(currentTarget.value)}
      />
      {open.error && <ErrorNotice error={open.error} />}
      <div>
        <Button type="submit" look="primary" busy={open.isPending}>
          Start session
        </Button>
      </div>
    </form>
  );
}
