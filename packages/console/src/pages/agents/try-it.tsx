// A session of the agent next to its definition. It runs what is in the editor: the saved version, or the unsaved draft.
import type { Draft, Environment } from '@signalbox/client';
import { SignalboxError } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { type FormEvent, type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from 'react';
import { useEnvironment } from '../../data/environment.ts';
import { preferredEnvironment } from '../../data/environment-names.ts';
import { useApiMutation, useApiQuery, useOrganization } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { Select, TextArea } from '../../ui/field.tsx';
import { ErrorNotice, fieldError, Notice } from '../../ui/notice.tsx';
import { Await } from '../../ui/page.tsx';
import { LazySessionView } from '../sessions/lazy-session-view.tsx';
import { useSession } from '../sessions/use-session.ts';
import { bodyOf, type Definition } from './definition.ts';
import { useDraft } from './draft.tsx';

/** The saved agent; undefined for a new one. */
interface SavedAgent {
  agentId: string;
  version: number;
}

/** `unsaved`: whether the draft has changes that are not saved. */
export function TryIt({
  agent,
  unsaved,
  sessionId,
  onOpen,
}: {
  agent?: SavedAgent;
  unsaved: boolean;
  sessionId: string | undefined;
  /** Called with the id of an opened session, or undefined to start another one. */
  onOpen: (sessionId: string | undefined) => void;
}) {
  const { organizationId, may } = useOrganization();
  const panel = useRef<HTMLDivElement>(null);
  const shown = useRef(sessionId);
  // The definition that the session in the panel runs, if it was started here. Every change of the draft is a new object.
  const [started, setStarted] = useState<Definition>();
  const current = useDraft().value;
  useEffect(() => {
    // The form was replaced by the session, or the session by the form, so the focused element is gone.
    if (shown.current !== sessionId) panel.current?.focus();
    shown.current = sessionId;
  }, [sessionId]);
  const environments = useApiQuery(['environments', 'choice'], (client) => client.environments.list({ limit: MOST }));
  function open(next: string | undefined) {
    setStarted(next === undefined ? undefined : current);
    onOpen(next);
  }
  return (
    <div className="stack try-it" ref={panel} tabIndex={-1}>
      {sessionId ? (
        <>
          <WhatRuns sessionId={sessionId} unsaved={unsaved} agent={agent} isPassed={started !== current}>
            <Button small onClick={() => open(undefined)}>
              New session
            </Button>
            <Link to="/$organizationId/sessions/$sessionId" params={{ organizationId, sessionId }}>
              Open session page
            </Link>
          </WhatRuns>
          <LazySessionView sessionId={sessionId} />
        </>
      ) : may('write') ? (
        <Await query={environments}>
          {({ data }) => <OpenForm agent={agent} unsaved={unsaved} environments={data} onOpen={open} />}
        </Await>
      ) : (
        <p className="quiet">You need the member role to start sessions.</p>
      )}
    </div>
  );
}

/** Which definition the session runs, and what to do to try the one in the editor. */
function WhatRuns({
  sessionId,
  unsaved,
  agent,
  isPassed,
  children,
}: {
  sessionId: string;
  unsaved: boolean;
  agent: SavedAgent | undefined;
  /** Whether the definition was changed since the session was started. */
  isPassed: boolean;
  children: ReactNode;
}) {
  const session = useSession(sessionId).data;
  const text = !session
    ? ''
    : session.draft
      ? isPassed
        ? 'This session runs the draft as it was when it started.'
        : 'This session runs your draft.'
      : unsaved
        ? 'This session runs the saved version. Save, or start a new session, to try your changes.'
        : `This session runs version ${agent?.version}. Its next turn uses what you save.`;
  return (
    <div className="row apart">
      <span className="quiet small" role="status">
        {text}
      </span>
      <span className="row">{children}</span>
    </div>
  );
}

// One page of the list.
const MOST = 100;

function OpenForm({
  agent,
  unsaved,
  environments,
  onOpen,
}: {
  agent: SavedAgent | undefined;
  unsaved: boolean;
  environments: readonly Environment[];
  onOpen: (sessionId: string) => void;
}) {
  const draft = useDraft();
  const ofPage = useEnvironment();
  const [environment, setEnvironment] = useState(() =>
    preferredEnvironment(
      environments.map(({ name }) => name),
      ofPage,
    ),
  );
  const [input, setInput] = useState('');
  const [isInvalid, setInvalid] = useState(false);
  const isDraft = agent === undefined || unsaved;
  const open = useApiMutation(
    (client, definition: Draft['definition'] | undefined) => {
      const start = { environment, input, ...(agent && { agentId: agent.agentId }) };
      return definition
        ? client.sessions.open({ ...start, draft: { definition } })
        : client.sessions.open({ ...start, agentId: agent!.agentId });
    },
    ['sessions'],
  );

  async function submit() {
    if (open.isPending) return;
    const found = isDraft ? draft.attempt() : [];
    setInvalid(found.length > 0);
    if (found.length > 0) return;
    try {
      const { sessionId } = await open.mutateAsync(isDraft ? bodyOf(draft.value) : undefined);
      onOpen(sessionId);
    } catch (error) {
      draft.refuse(definitionErrors(error));
    }
  }
  function onSubmit(event: FormEvent) {
    event.preventDefault();
    void submit();
  }
  function onKeyDown(event: KeyboardEvent) {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    void submit();
  }
  return (
    <form className="stack" onSubmit={onSubmit} noValidate>
      <p className="quiet small">
        {isDraft ? 'Runs your draft, saved or not, ' : `Runs version ${agent.version} `}
        in a real session with real tools and secrets. The session appears under Sessions.
      </p>
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
        placeholder="Write the first message"
        value={input}
        error={fieldError(open.error, 'input')}
        onChange={({ currentTarget }) => setInput(currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      {isInvalid && draft.problems.length > 0 && (
        <Notice kind="warn" live>
          <p>Fix the problems of the definition first.</p>
        </Notice>
      )}
      {open.error && <ErrorNotice error={open.error} />}
      <div>
        <Button type="submit" look="primary" busy={open.isPending}>
          {isDraft ? 'Run draft' : 'Start session'}
        </Button>
      </div>
    </form>
  );
}

const IN_DRAFT = 'draft.definition.';

/** What the service says about fields of the definition. */
function definitionErrors(error: unknown): { path: string; message: string }[] {
  if (!(error instanceof SignalboxError)) return [];
  return error.errors.flatMap(({ path, message }) =>
    path.startsWith(IN_DRAFT) ? [{ path: path.slice(IN_DRAFT.length), message }] : [],
  );
}
