// What a column's session shows, as it runs, with what it took and cost.
import type { Session } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { CircleAlert, FlaskConical, ShieldQuestion, Wrench } from 'lucide-react';
import { memo, useEffect } from 'react';
import { useApiMutation, useOrganization } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { Json } from '../../ui/copy.tsx';
import { Dollars } from '../../ui/dollars.tsx';
import { Markdown } from '../../ui/markdown/markdown.tsx';
import { ErrorNotice, Notice } from '../../ui/notice.tsx';
import { SkeletonCards } from '../../ui/skeleton.tsx';
import { NeverSlow } from '../../ui/slow.tsx';
import { PlainText } from '../../ui/text.tsx';
import { type CallEntry, type Entry, operationIdOf } from '../sessions/conversation.ts';
import { SessionStatus } from '../sessions/session-status.tsx';
import { Sources } from '../sessions/sources.tsx';
import { useFollowing, useSession } from '../sessions/use-session.ts';
import type { Baseline } from './comparison.tsx';
import { type Measures, shownMeasures } from './measures.ts';
import { isBusy } from './run.ts';

/** `fromTurn`: the turn of the first message of the playground. */
export function Output({
  sessionId,
  fromTurn,
  mocked,
  measures,
  baseline,
  onText,
}: {
  sessionId: string;
  fromTurn: number;
  measures: Measures | undefined;
  /** What the measures are compared with. */
  baseline: Baseline | undefined;
  /** The names of the tools that the session mocks. */
  mocked: ReadonlySet<string>;
  onText: (text: string) => void;
}) {
  const { data, error, refetch } = useSession(sessionId);
  if (!data) {
    return error ? <ErrorNotice error={error} retry={() => refetch()} /> : <SkeletonCards cards={1} />;
  }
  return <Followed key={sessionId} session={data} {...{ fromTurn, mocked, measures, baseline, onText }} />;
}

function Followed({
  session,
  fromTurn,
  mocked,
  measures,
  baseline,
  onText,
}: {
  session: Session;
  fromTurn: number;
  mocked: ReadonlySet<string>;
  measures: Measures | undefined;
  baseline: Baseline | undefined;
  onText: (text: string) => void;
}) {
  const { organizationId } = useOrganization();
  const { entries, growing, connection, error } = useFollowing(session);
  const shown = entries.filter(({ turn }) => turn !== null && turn >= fromTurn);
  const text = shown.flatMap((entry) => (entry.kind === 'text' ? [entry.text] : [])).join('\n\n');
  useEffect(() => onText(text), [text, onText]);
  return (
    <section className="playground-output" aria-label="Output" aria-busy={isBusy(session)}>
      <div className="row apart">
        <SessionStatus session={session} />
        <Link
          className="small"
          to="/$organizationId/sessions/$sessionId"
          params={{ organizationId, sessionId: session.sessionId }}
        >
          Open session
        </Link>
      </div>
      {connection === 'lost' && (
        <Notice kind="warn" live>
          <p>The connection is lost. The session continues, and its output appears when the service is back.</p>
        </Notice>
      )}
      {error != null && <ErrorNotice error={error} />}
      <div className="stack">
        {shown.map((entry) => (
          <EntryView key={entry.key} entry={entry} isGrowing={growing.has(entry.key)} mocked={mocked} />
        ))}
        {shown.length === 0 && isBusy(session) && (
          <NeverSlow>
            <SkeletonCards cards={1} />
          </NeverSlow>
        )}
      </div>
      {session.error && (
        <Notice kind="bad">
          <p>{session.error.message}</p>
        </Notice>
      )}
      <Figures {...{ measures, baseline }} />
    </section>
  );
}

const EntryView = memo(function EntryView({
  entry,
  isGrowing,
  mocked,
}: {
  entry: Entry;
  isGrowing: boolean;
  mocked: ReadonlySet<string>;
}) {
  if (entry.kind === 'text')
    return (
      <>
        <Markdown text={entry.text} isGrowing={isGrowing} />
        {entry.sources && <Sources sources={entry.sources} />}
      </>
    );
  if (entry.kind === 'call') return <CallLine call={entry} isMocked={isMocked(entry.tool, mocked)} />;
  if (entry.kind === 'reasoning') {
    return (
      <details className="playground-call">
        <summary>Reasoning</summary>
        <Markdown text={entry.text} />
      </details>
    );
  }
  return (
    <p className="playground-said">
      <PlainText text={entry.text} />
    </p>
  );
});

function isMocked(tool: string, mocked: ReadonlySet<string>): boolean {
  return mocked.has(tool) || (tool.includes('__') && mocked.has(tool.slice(0, tool.indexOf('__'))));
}

const words: Record<CallEntry['state'], string> = {
  input: 'running',
  approval: 'needs approval',
  running: 'running',
  result: 'running',
  done: 'returned',
  failed: 'failed',
  denied: 'failed',
  unknown: 'outcome unknown',
};

function CallLine({ call, isMocked }: { call: CallEntry; isMocked: boolean }) {
  const { tool, input, state, output, error } = call;
  const isPending = state === 'approval';
  const Icon = isPending ? ShieldQuestion : error !== null ? CircleAlert : isMocked ? FlaskConical : Wrench;
  return (
    <>
      <details className={error === null ? 'playground-call' : 'playground-call failed'}>
        <summary>
          <Icon aria-hidden="true" />
          <code>
            <PlainText text={tool} />
          </code>
          <span className="quiet">
            {isMocked && 'mocked · '}
            {words[state]}
          </span>
        </summary>
        <h4>Input</h4>
        <Json value={input} />
        {(state === 'done' || error !== null) && (
          <>
            <h4>{error === null ? 'Output' : 'Error'}</h4>
            {error === null ? <Json value={output ?? null} /> : <PlainText text={error} />}
          </>
        )}
      </details>
      {isPending && <Decide call={call} />}
    </>
  );
}

function Decide({ call }: { call: CallEntry }) {
  const decide = useApiMutation(
    (client, decision: 'approve' | 'deny') => client.approvals[decision](operationIdOf(call)),
    ['approvals', 'sessions'],
  );
  return (
    <div className="row">
      <Button small look="primary" busy={decide.isPending} onClick={() => decide.mutate('approve')}>
        Approve {call.tool}
      </Button>
      <Button small onClick={() => !decide.isPending && decide.mutate('deny')}>
        Deny
      </Button>
      {decide.error && <ErrorNotice error={decide.error} />}
    </div>
  );
}

/** What it took and cost, compared with the baseline. */
function Figures({ measures, baseline }: { measures: Measures | undefined; baseline: Baseline | undefined }) {
  const figures = shownMeasures(measures, baseline?.measures);
  return (
    <dl className="playground-measures">
      {figures.map(({ name, text, costUsd, change }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            {costUsd == null ? text : <Dollars usd={costUsd} as="short" />}
            {change && <span className="quiet small"> {change}</span>}
          </dd>
        </div>
      ))}
      {baseline && figures.some(({ change }) => change) && (
        <div>
          <dt>Compared with</dt>
          <dd>{baseline.name}</dd>
        </div>
      )}
    </dl>
  );
}
