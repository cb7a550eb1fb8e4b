// One step of the trace in full, in a drawer next to it.
import type { OperationDetails, Session, SessionTurn } from '@signalbox/client';
import { Link, useNavigate } from '@tanstack/react-router';
import { ChevronDown, ChevronUp } from 'lucide-react';
import { useState } from 'react';
import { useApiMutation, useApiQuery, useOrganization } from '../../../data/organization.tsx';
import { toolTitle } from '../../../lib/text-format.ts';
import { useShortcuts } from '../../../shortcuts/registry.ts';
import { Status } from '../../../ui/badge.tsx';
import { Button } from '../../../ui/button.tsx';
import { Dollars } from '../../../ui/dollars.tsx';
import { Drawer } from '../../../ui/drawer.tsx';
import { ErrorNotice, Notice } from '../../../ui/notice.tsx';
import { SkeletonCards } from '../../../ui/skeleton.tsx';
import { Tabs } from '../../../ui/tabs.tsx';
import { PlainText } from '../../../ui/text.tsx';
import { duration } from '../../../ui/time.tsx';
import { number } from '../session-text.ts';
import { DetailsTab } from './details-tab.tsx';
import { PromptTab } from './prompt-tab.tsx';
import { RequestTab } from './request-tab.tsx';
import { ResponseTab } from './response-tab.tsx';

type Tab = 'prompt' | 'response' | 'request' | 'details';

/** `all`: the steps in the order of the trace, for "previous" and "next". */
export function StepDrawer({
  session,
  turns,
  operationId,
  onStep,
  onClose,
}: {
  session: Session;
  turns: readonly SessionTurn[];
  operationId: string;
  onStep: (operationId: string) => void;
  onClose: () => void;
}) {
  const { sessionId } = session;
  const [tab, setTab] = useState<Tab>();
  const line = turns.flatMap(({ operations }) => operations).find((one) => isStep(one, operationId));
  // Read again when the step has ended.
  const query = useApiQuery(['sessions', sessionId, 'operations', operationId, line?.status ?? ''], (client) =>
    client.sessions.operation(sessionId, operationId),
  );
  const all = turns
    .toSorted((a, b) => a.turn - b.turn)
    .flatMap(({ operations }) => operations)
    .filter(({ kind }) => kind !== 'approval')
    .map((one) => one.operationId);
  const turn = turns.find(({ operations }) => operations.some((one) => isStep(one, operationId)));
  const place = all.indexOf(operationId);
  const [before, after] = place < 0 ? [] : [all[place - 1], all[place + 1]];
  useShortcuts('Call', [
    { keys: 'j', does: 'Next call', run: () => (after ? onStep(after) : false) },
    { keys: 'k', does: 'Previous call', run: () => (before ? onStep(before) : false) },
  ]);
  const { data, error, refetch } = query;
  const shown = data ?? line;
  const isTool = shown?.kind === 'tool';
  const title = !shown ? 'Call' : isTool ? toolTitle(shown.name) : shown.name;
  return (
    <Drawer
      title={<PlainText text={title} />}
      onClose={onClose}
      actions={
        <>
          <Button
            look="bare"
            className="icon"
            aria-label="Previous call"
            title="Previous call (k)"
            disabled={!before}
            onClick={() => before && onStep(before)}
          >
            <ChevronUp aria-hidden="true" />
          </Button>
          <Button
            look="bare"
            className="icon"
            aria-label="Next call"
            title="Next call (j)"
            disabled={!after}
            onClick={() => after && onStep(after)}
          >
            <ChevronDown aria-hidden="true" />
          </Button>
        </>
      }
    >
      {error ? (
        <ErrorNotice error={error} retry={() => refetch()} />
      ) : !data ? (
        <SkeletonCards cards={3} />
      ) : (
        <>
          <Summary step={data} />
          <Actions session={session} step={data} turns={turns} />
          {!data.exact && data.notes.length > 0 && (
            <Notice>
              {data.notes.map((note) => (
                <p key={note}>
                  <PlainText text={note} />
                </p>
              ))}
            </Notice>
          )}
          <Tabs
            label="Parts of the call"
            value={shownTab(tab, data)}
            onChange={setTab}
            tabs={[
              ...(isTool
                ? []
                : [{ value: 'prompt' as const, label: 'Prompt', content: <PromptTab step={data} turn={turn} /> }]),
              { value: 'response', label: 'Response', content: <ResponseTab step={data} /> },
              { value: 'request', label: 'Request', content: <RequestTab step={data} /> },
              { value: 'details', label: 'Details', content: <DetailsTab step={data} /> },
            ]}
          />
        </>
      )}
    </Drawer>
  );
}

function isStep({ kind, operationId }: { kind: string; operationId: string }, wanted: string): boolean {
  return kind !== 'approval' && operationId === wanted;
}

/** The tab that was chosen, as far as the step has it. */
function shownTab(chosen: Tab | undefined, { kind, endedAt }: OperationDetails): Tab {
  if (kind !== 'tool') return chosen ?? 'prompt';
  if (chosen !== undefined && chosen !== 'prompt') return chosen;
  // A call that has not ended has no response yet.
  return endedAt === null ? 'request' : 'response';
}

function Summary({ step }: { step: OperationDetails }) {
  const { status, startedAt, endedAt, firstTokenAt, usage, turn, error, kind } = step;
  const since = (at: string) => duration(Date.parse(at) - Date.parse(startedAt!));
  const facts = [
    `Turn ${turn}`,
    startedAt && endedAt && since(endedAt),
    startedAt && firstTokenAt && `first token after ${since(firstTokenAt)}`,
    usage && `${number(usage.inputTokens)} → ${number(usage.outputTokens)} tokens`,
  ].filter((fact) => typeof fact === 'string');
  return (
    <div className="step-summary">
      <Status value={status} />
      <span className="number">
        {facts.join(' · ')}
        {usage && usage.costUsd !== null && (
          <>
            {' '}
            · <Dollars usd={usage.costUsd} as="short" />
          </>
        )}
      </span>
      {error && kind !== 'tool' && (
        <p className="step-error">
          <PlainText text={error} />
        </p>
      )}
    </div>
  );
}

function Actions({
  session: { sessionId },
  step: { turn, step, kind },
  turns,
}: {
  session: Session;
  step: OperationDetails;
  turns: readonly SessionTurn[];
}) {
  const { organizationId, may } = useOrganization();
  const navigate = useNavigate();
  const fork = useApiMutation((client, atTurn: number) => client.sessions.fork(sessionId, { atTurn }), ['sessions']);
  const hasEnded = turns.some((one) => one.turn === turn && one.endedAt !== null);
  const openFork = async () => {
    const opened = await fork.mutateAsync(turn);
    await navigate({
      to: '/$organizationId/sessions/$sessionId',
      params: { organizationId, sessionId: opened.sessionId },
    });
  };
  if (!may('write')) return null;
  return (
    <div className="step-actions">
      {kind === 'model' && (
        <Link
          className="button small"
          to="/$organizationId/playground"
          params={{ organizationId }}
          search={{ session: sessionId, turn, step }}
        >
          Open in playground
        </Link>
      )}
      {hasEnded && (
        <Button small busy={fork.isPending} onClick={() => void openFork().catch(() => {})}>
          Fork after turn {turn}
        </Button>
      )}
      {fork.error && <ErrorNotice error={fork.error} />}
    </div>
  );
}
