// One column: what it runs, and what that shows.
import type { Agent, Draft } from '@signalbox/client';
import { BookOpen, Copy, Save, Trash2, UserPlus } from 'lucide-react';
import { lazy, Suspense, useState } from 'react';
import { useOrganization } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { Menu, type MenuItem } from '../../ui/menu.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { SkeletonCards } from '../../ui/skeleton.tsx';
import { PlainText } from '../../ui/text.tsx';
import type { Baseline } from './comparison.tsx';
import { columnOf } from './entry.ts';
import { LoadDialog } from './load-dialog.tsx';
import type { Measures } from './measures.ts';
import { Setup } from './setup.tsx';
import { type Column, draftOf, letterOf, ranDefinition } from './state.ts';

// It reads Markdown and streams, which the page does not need until something runs.
const Output = lazy(() => import('./output.tsx').then((module) => ({ default: module.Output })));
const SaveVersion = lazy(() => import('./save-dialogs.tsx').then((module) => ({ default: module.SaveVersion })));
const SaveAgent = lazy(() => import('./save-dialogs.tsx').then((module) => ({ default: module.SaveAgent })));

export function ColumnView({
  column,
  index,
  fromTurn,
  environment,
  isSetupHidden,
  measures,
  baseline,
  error,
  onChange,
  onDuplicate,
  onRemove,
  onText,
}: {
  column: Column;
  index: number;
  fromTurn: number;
  environment: string;
  isSetupHidden: boolean;
  measures: Measures | undefined;
  baseline: Baseline | undefined;
  /** Why it did not start. */
  error: unknown;
  onChange: (change: Partial<Column>) => void;
  /** Undefined if there is no room. */
  onDuplicate: (() => void) | undefined;
  onRemove: (() => void) | undefined;
  onText: (text: string) => void;
}) {
  const { may } = useOrganization();
  const [dialog, setDialog] = useState<'load' | 'version' | 'agent'>();
  const { source, definition, run } = column;
  const close = () => setDialog(undefined);
  const onSaved = (agent: Agent) => {
    const { source, definition } = columnOf(agent);
    onChange({ source, definition, isEdited: false });
  };
  const items: MenuItem[] = [
    { label: 'Load an agent…', icon: BookOpen, onSelect: () => setDialog('load'), group: 'open' },
    ...(onDuplicate ? [{ label: 'Duplicate column', icon: Copy, onSelect: onDuplicate, group: 'open' }] : []),
    ...(source && may('write')
      ? [{ label: 'Save as version…', icon: Save, onSelect: () => setDialog('version'), group: 'save' }]
      : []),
    ...(may('write')
      ? [{ label: 'Save as new agent…', icon: UserPlus, onSelect: () => setDialog('agent'), group: 'save' }]
      : []),
    ...(onRemove ? [{ label: 'Remove column', icon: Trash2, onSelect: onRemove, danger: true, group: 'remove' }] : []),
  ];
  const mocked = new Set(run ? Object.keys((JSON.parse(run.draft) as Draft).mocks ?? {}) : []);
  const isStale = run !== null && run.draft !== JSON.stringify(draftOf(column));
  const isChanged =
    column.isEdited === true || (source === null && run !== null) || ranDefinition(column) !== definition;
  return (
    <section className="playground-column card" aria-label={`Column ${letterOf(index)}`}>
      <header className="row apart">
        <h2>
          <span className="playground-letter" aria-hidden="true">
            {letterOf(index)}
          </span>{' '}
          <PlainText text={source?.name ?? String(definition.name ?? 'New agent')} />{' '}
          <span className="quiet small">
            {source ? `from version ${source.version}` : 'not saved'}
            {source && isChanged && ', edited'}
          </span>
        </h2>
        <div className="row">
          {isChanged && may('write') && (
            <Button small onClick={() => setDialog(source ? 'version' : 'agent')}>
              {source ? 'Save version…' : 'Save agent…'}
            </Button>
          )}
          <Menu label={`Actions of column ${letterOf(index)}`} items={items} />
        </div>
      </header>
      <div>
        {!isSetupHidden && (
          <Setup
            column={column}
            environment={environment}
            onChange={(change) => onChange(change.definition ? { ...change, isEdited: true } : change)}
          />
        )}
      </div>
      <div className="playground-result-of-run" data-has-run={run !== null || undefined}>
        {error !== undefined && <ErrorNotice error={error} />}
        {run ? (
          <>
            {isStale && <p className="quiet small">Changed since this run.</p>}
            <Suspense fallback={<SkeletonCards cards={1} />}>
              <Output
                key={run.sessionId}
                sessionId={run.sessionId}
                {...{ fromTurn, mocked, measures, baseline, onText }}
              />
            </Suspense>
          </>
        ) : (
          <p className="quiet small playground-waiting">The output appears here.</p>
        )}
      </div>
      {dialog === 'load' && (
        <LoadDialog
          onLoad={({ source, definition, tools }) => onChange({ source, definition, tools, isEdited: false })}
          onClose={close}
        />
      )}
      <Suspense>
        {dialog === 'version' && source && (
          <SaveVersion
            column={column}
            source={source}
            onSaved={(agent) => {
              onSaved(agent);
              close();
            }}
            onClose={close}
          />
        )}
        {dialog === 'agent' && <SaveAgent column={column} onSaved={onSaved} onClose={close} />}
      </Suspense>
    </section>
  );
}
