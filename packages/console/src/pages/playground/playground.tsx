// The playground: drafts next to each other on the same input. No agent changes until the user says so; each run is a session of a draft.
import type { Session } from '@signalbox/client';
import { useQueries, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { Columns2, FlaskConical, GitCompare, RotateCcw, Undo2 } from 'lucide-react';
import { type KeyboardEvent, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { useEnvironment } from '../../data/environment.ts';
import { preferredEnvironment, useEnvironmentNames } from '../../data/environment-names.ts';
import { useOrganization } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty-state.tsx';
import { Menu } from '../../ui/menu.tsx';
import { ErrorNotice, Notice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { SkeletonCards } from '../../ui/skeleton.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { ColumnView } from './column.tsx';
import { CompareOutputs } from './compare-outputs.tsx';
import { Composer } from './composer.tsx';
import { openEntry } from './entry.ts';
import { blank, example } from './example.ts';
import { LoadDialog } from './load-dialog.tsx';
import { measuresOf } from './measures.ts';
import { useOriginal } from './origin.ts';
import { canContinue, isBusy, runColumn } from './run.ts';
import {
  type Column,
  emptyMessage,
  firstTurnOf,
  letterOf,
  MAX_COLUMNS,
  newColumn,
  type Playground,
  remember,
  remembered,
} from './state.ts';
import '../agents/agents.css';
import './playground.css';

/** A change of what is open by then: several may come before the page is drawn again, such as runs that start at the same moment. */
type Change = (open: Playground) => Playground;

const ABOUT = 'The agent does not change. Runs are listed under Sessions as drafts, and no webhook is sent.';

export function PlaygroundPage() {
  const { organizationId, client } = useOrganization();
  const search = useSearch({ from: '/$organizationId/playground' });
  const navigate = useNavigate();
  const [playground, setPlayground] = useState(() => remembered(organizationId));
  // What a link or a new start has replaced.
  const [previous, setPrevious] = useState<Playground>();
  const [error, setError] = useState<unknown>();
  const isEntry = search.agent !== undefined || search.session !== undefined;
  const key = JSON.stringify([search.agent, search.version, search.session, search.turn, search.step]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for what a link names
  useEffect(() => {
    if (!isEntry) return;
    let isOver = false;
    openEntry(client, search).then(
      (opened) => {
        if (isOver) return;
        setPrevious(playground);
        setPlayground(opened);
        void navigate({ to: '/$organizationId/playground', params: { organizationId }, search: {}, replace: true });
      },
      (problem) => !isOver && setError(problem),
    );
    return () => {
      isOver = true;
    };
  }, [key]);
  const [isKept, setKept] = useState(true);
  useEffect(() => {
    if (!isEntry) setKept(remember(organizationId, playground));
  }, [organizationId, playground, isEntry]);

  if (error !== undefined) return <Titled>{<ErrorNotice error={error} />}</Titled>;
  if (isEntry) return <Titled>{<SkeletonCards />}</Titled>;
  function change(next: Change | undefined) {
    if (!next) setPrevious(playground);
    setPlayground((open) => open && next?.(open));
  }
  const restore = previous && {
    restore() {
      setPlayground(previous);
      setPrevious(undefined);
    },
  };
  if (!playground) return <Start onStart={setPlayground} {...restore} />;
  return <Open {...{ playground, isKept }} onChange={change} {...restore} />;
}

function Titled({ children, actions }: { children: React.ReactNode; actions?: React.ReactNode }) {
  return (
    <Page title="Playground" about={ABOUT} operation="openSession" actions={actions}>
      {children}
    </Page>
  );
}

function Start({ onStart, restore }: { onStart: (playground: Playground) => void; restore?: () => void }) {
  const [isLoading, setLoading] = useState(false);
  const start = (column: Column) => onStart({ ...example(), columns: [column], messages: [emptyMessage] });
  return (
    <Titled>
      <EmptyState
        icon={FlaskConical}
        title="Compare two drafts on the same message"
        action={
          <>
            <Button look="primary" onClick={() => onStart(example())}>
              Start with an example
            </Button>
            <Button onClick={() => setLoading(true)}>Load an agent</Button>
            <Button onClick={() => start(newColumn(blank))}>Start blank</Button>
            {restore && <Button onClick={restore}>Restore the last one</Button>}
          </>
        }
      >
        The example needs no API key: a scripted model calls a tool that is mocked in two ways.
      </EmptyState>
      {isLoading && <LoadDialog onLoad={start} onClose={() => setLoading(false)} />}
    </Titled>
  );
}

const wide = matchMedia('(min-width: 768px)');

function useWide(): boolean {
  return useSyncExternalStore(
    (listener) => {
      wide.addEventListener('change', listener);
      return () => wide.removeEventListener('change', listener);
    },
    () => wide.matches,
  );
}

function Open({
  playground,
  isKept,
  onChange,
  restore,
}: {
  playground: Playground;
  isKept: boolean;
  onChange: (next: Change | undefined) => void;
  /** Returns to what was open before. */
  restore?: () => void;
}) {
  const { client, organizationId, may } = useOrganization();
  const queries = useQueryClient();
  const isWide = useWide();
  const { columns, messages, isSetupHidden } = playground;
  const chosen = useEnvironment();
  const names = useEnvironmentNames() ?? [];
  const environment = playground.environment ?? preferredEnvironment(names, chosen);
  const [tab, setTab] = useState('A');
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({});
  const [errors, setErrors] = useState<Readonly<Record<string, unknown>>>({});
  const [isStarting, setStarting] = useState(false);
  const [isComparing, setComparing] = useState(false);
  const columnsFrame = useRef<HTMLDivElement>(null);
  const sessions = useQueries({
    queries: columns.map(({ run }) => ({
      queryKey: [organizationId, 'sessions', run?.sessionId ?? 'none'],
      queryFn: () => client.sessions.get(run!.sessionId),
      enabled: run !== null,
    })),
  }).map(({ data }) => data as Session | undefined);
  const original = useOriginal(playground.origin);
  const measures = useQueries({
    queries: sessions.map((session, index) => ({
      queryKey: [organizationId, 'sessions', columns[index]!.run?.sessionId, 'turns', 'playground', session?.updatedAt],
      queryFn: async () => {
        const { data } = await client.sessions.turns(session!.sessionId, { limit: 100 });
        return measuresOf(data.filter(({ turn }) => turn >= firstTurnOf(playground))) ?? null;
      },
      enabled: session !== undefined && !isBusy(session),
    })),
  }).map(({ data }) => data ?? undefined);
  const change = (next: Partial<Playground>) => onChange((open) => ({ ...open, ...next }));
  const changeColumn = (id: string, next: Partial<Column>) =>
    onChange((open) => ({ ...open, columns: open.columns.map((one) => (one.id === id ? { ...one, ...next } : one)) }));
  const isRunning = sessions.some((session, index) => columns[index]!.run !== null && session && isBusy(session));
  const isReady = messages.every(({ text, files }) => text.trim() !== '' || files.length > 0) && may('write');
  const continues = columns.every((column, index) => canContinue(column, messages, sessions[index]));

  async function run(isNext: boolean) {
    if (isStarting || !isReady) return;
    setStarting(true);
    setErrors({});
    const started = { ...playground, environment };
    change({ environment });
    await Promise.all(
      started.columns.map(async (column) => {
        try {
          const { run } = await runColumn(client, column, started, isNext);
          changeColumn(column.id, { run });
        } catch (problem) {
          setErrors((before) => ({ ...before, [column.id]: problem }));
        }
      }),
    );
    setStarting(false);
    // The output is below the setup. Its place is drawn by then, with room above the composer.
    requestAnimationFrame(() => {
      const places = columnsFrame.current?.querySelectorAll<HTMLElement>('.playground-result-of-run') ?? [];
      // On a phone, one column is shown.
      const shown = [...places].find((one) => one.offsetParent !== null);
      shown?.scrollIntoView({ block: 'start' });
    });
  }

  async function stop() {
    const busy = sessions.flatMap((session) => (session && isBusy(session) ? [session.sessionId] : []));
    await Promise.allSettled(busy.map((sessionId) => client.sessions.cancel(sessionId)));
    await queries.invalidateQueries({ queryKey: [organizationId, 'sessions'] });
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    // An editor would insert a line.
    event.stopPropagation();
    void run(false);
  }

  const views = columns.map((column, index) => (
    <ColumnView
      key={column.id}
      {...{ column, index, environment, isSetupHidden }}
      measures={measures[index]}
      baseline={original ?? (index > 0 ? { name: 'Column A', measures: measures[0] } : undefined)}
      fromTurn={firstTurnOf(playground)}
      error={errors[column.id]}
      onChange={(next) => changeColumn(column.id, next)}
      onDuplicate={
        columns.length < MAX_COLUMNS
          ? () => change({ columns: [...columns, { ...column, id: crypto.randomUUID(), run: null }] })
          : undefined
      }
      onRemove={
        columns.length > 1 ? () => change({ columns: columns.filter(({ id }) => id !== column.id) }) : undefined
      }
      onText={(text) => setTexts((before) => (before[column.id] === text ? before : { ...before, [column.id]: text }))}
    />
  ));
  const compared = [
    ...(original ? [original] : []),
    ...columns.map(({ id }, index) => ({
      name: `Column ${letterOf(index)}`,
      text: texts[id] ?? '',
      measures: measures[index],
    })),
  ];
  const last = columns.at(-1)!;
  return (
    <Titled
      actions={
        <>
          {columns.length < MAX_COLUMNS && (
            <Button onClick={() => change({ columns: [...columns, { ...last, id: crypto.randomUUID(), run: null }] })}>
              <Columns2 aria-hidden="true" /> Add column
            </Button>
          )}
          {compared.length > 1 && columns.every(({ run }) => run) && (
            <Button onClick={() => setComparing(true)}>
              <GitCompare aria-hidden="true" /> Compare
            </Button>
          )}
          <Button onClick={() => change({ isSetupHidden: !isSetupHidden })}>
            {isSetupHidden ? 'Show setup' : 'Hide setup'}
          </Button>
          <Menu
            label="More actions"
            items={[
              ...(restore ? [{ label: 'Restore the last one', icon: Undo2, onSelect: restore }] : []),
              { label: 'Start over', icon: RotateCcw, onSelect: () => onChange(undefined) },
            ]}
          />
        </>
      }
    >
      <div className="stack" ref={columnsFrame} onKeyDownCapture={onKeyDown}>
        {playground.origin && <Repeats origin={playground.origin} />}
        {!isKept && (
          <Notice kind="warn">
            <p>This browser has no room for the playground. A reload loses your changes.</p>
          </Notice>
        )}
        {!may('write') && (
          <Notice>
            <p>You need the member role to run drafts.</p>
          </Notice>
        )}
        {isWide || columns.length === 1 ? (
          <div className={`playground-columns of-${columns.length}`}>{views}</div>
        ) : (
          <Tabs
            label="Columns"
            value={columns.some((_, index) => letterOf(index) === tab) ? tab : 'A'}
            onChange={setTab}
            tabs={views.map((content, index) => ({
              value: letterOf(index),
              label: `Column ${letterOf(index)}`,
              content,
              kept: true,
            }))}
          />
        )}
        <Composer
          {...{ playground, environment, isRunning, isStarting, continues }}
          mayRun={isReady}
          onChange={change}
          onRun={() => void run(false)}
          onContinue={() => void run(true)}
          onStop={() => void stop()}
        />
      </div>
      {isComparing && <CompareOutputs runs={compared} columns={columns} onClose={() => setComparing(false)} />}
    </Titled>
  );
}

function Repeats({ origin: { sessionId, turn, step } }: { origin: NonNullable<Playground['origin']> }) {
  const { organizationId } = useOrganization();
  return (
    <Notice>
      <p>
        Repeats turn {turn} of{' '}
        <Link to="/$organizationId/sessions/$sessionId" params={{ organizationId, sessionId }} search={{ turn }}>
          a session
        </Link>
        , after the same conversation. Its tools return what they returned then, and are not run.
        {step !== undefined && step > 1 && ` The turn begins at its first step, and runs the model of step ${step}.`}
      </p>
    </Notice>
  );
}
