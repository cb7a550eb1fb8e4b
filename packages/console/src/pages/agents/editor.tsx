// The form and the JSON of one draft: side by side if there is room, else one at a time.
import type { SignalboxError } from '@signalbox/client';
import { CreateAgent } from '@signalbox/contract';
import { useBlocker } from '@tanstack/react-router';
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { Button } from '../../ui/button.tsx';
import { CodeEditor } from '../../ui/code-editor.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorNotice, Notice } from '../../ui/notice.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { type AgentDraft, DraftProvider } from './draft.tsx';
import { DraftJson } from './fields.tsx';
import { AgentForm } from './form.tsx';
import { Problems } from './problems.tsx';

export type View = 'form' | 'json' | 'try';

const wide = matchMedia('(min-width: 1160px)');

function useWide(): boolean {
  return useSyncExternalStore(
    (listener) => {
      wide.addEventListener('change', listener);
      return () => wide.removeEventListener('change', listener);
    },
    () => wide.matches,
  );
}

export function Editor({
  draft,
  readOnly,
  isNew = false,
  changed,
  action,
  state,
  submit,
  isRestored,
  onDiscard,
  view: given,
  onView,
  tryIt,
}: {
  draft: AgentDraft;
  readOnly: boolean;
  /** Not saved yet. */
  isNew?: boolean;
  /** Whether leaving would lose changes. */
  changed: boolean;
  /** The label of the save button. */
  action: string;
  /** The text next to the button: what is saved and what is not. */
  state: string;
  /** Saves a draft that has no errors in the schema. */
  submit: () => Promise<void>;
  /** Whether there were kept edits when the page was opened. */
  isRestored: boolean;
  /** The user gives up the changes. */
  onDiscard: () => void;
  view?: View | undefined;
  onView: (view: View) => void;
  tryIt: ReactNode;
}) {
  const isWide = useWide();
  const frame = useRef<HTMLDivElement>(null);
  const [sought, setSought] = useState<{ path: string }>();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [hasRestored, setHasRestored] = useState(isRestored);
  if (hasRestored && !changed) setHasRestored(false);

  // Next to the form there is one of the other two views.
  const view = given ?? 'form';
  const besideForm = view === 'form' ? (readOnly ? 'json' : 'try') : view;
  const showsForm = isWide || view === 'form';
  useEffect(() => {
    if (!sought || !showsForm) return;
    focusPlace(frame.current!, sought.path);
    setSought(undefined);
  }, [sought, showsForm]);

  function seek(path: string) {
    if (!showsForm) onView('form');
    draft.attempt();
    setSought({ path });
  }

  async function save() {
    if (busy) return;
    setError(undefined);
    draft.refuse([]);
    const [first] = draft.attempt();
    if (first) return seek(first.path);
    setBusy(true);
    try {
      await submit();
    } catch (problem) {
      const { errors = [] } = problem as Partial<SignalboxError>;
      draft.refuse(errors);
      setError(problem);
      if (errors[0]) seek(errors[0].path);
    } finally {
      setBusy(false);
    }
  }

  function onKeyDown(event: KeyboardEvent) {
    if (readOnly || event.key !== 's' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    void save();
  }

  const isUnreadable = draft.unreadText('') !== undefined;
  const form = (
    <>
      {isUnreadable && (
        <Notice kind="warn" live>
          <p>The JSON is not valid. The form shows the last valid version until you fix it.</p>
        </Notice>
      )}
      <AgentForm readOnly={readOnly || isUnreadable} />
    </>
  );
  const json = readOnly ? (
    <CodeEditor
      label="Definition as JSON"
      language="json"
      value={JSON.stringify(draft.value, null, 2)}
      mostLines={36}
    />
  ) : (
    <>
      <DraftJson
        path=""
        label="Definition as JSON"
        lines={24}
        mostLines={isWide ? 36 : 24}
        schema={CreateAgent}
        validates={false}
        listed={false}
        indentsWithTab
      />
      <Problems problems={draft.problems} onChoose={seek} none="Definition is valid." />
    </>
  );
  const toSave = changed || isNew || draft.shown.length > 0 || error !== undefined;
  const views = [
    { value: 'form' as const, label: 'Form', content: form, kept: true },
    { value: 'try' as const, label: 'Try it', content: tryIt },
    { value: 'json' as const, label: 'JSON', content: json },
  ];
  // Errors of fields disappear when the fields change; an error of the whole request stays until the next attempt.
  const isStale = (error as Partial<SignalboxError> | undefined)?.errors?.length && draft.refused.length === 0;

  return (
    <DraftProvider draft={draft}>
      <LeaveGuard changed={changed} onDiscard={onDiscard} />
      {/* biome-ignore lint/a11y/noStaticElementInteractions: a keyboard shortcut for the button */}
      <div className="stack" ref={frame} onKeyDown={onKeyDown}>
        {hasRestored && (
          <Notice live>
            <p>Your unsaved changes were restored.</p>
            <div>
              <Button small onClick={onDiscard}>
                Discard changes
              </Button>
            </div>
          </Notice>
        )}
        {isWide ? (
          <div className="side-by-side">
            <div className="stack">{form}</div>
            <div className="beside">
              <Tabs label="Test session and JSON" value={besideForm} onChange={onView} tabs={views.slice(1)} />
            </div>
          </div>
        ) : (
          <Tabs label="Views" value={view} onChange={onView} tabs={views} />
        )}
        {!readOnly && (
          <div className={toSave ? 'save-bar' : 'save-bar resting'}>
            {error !== undefined && !isStale ? (
              <ErrorNotice error={error} />
            ) : (
              draft.shown.length > 0 && (
                <Problems
                  problems={draft.shown}
                  onChoose={seek}
                  most={isWide ? 3 : 1}
                  isOfForm={isWide || view === 'form'}
                />
              )
            )}
            <div className="row apart">
              <span className="quiet small" role="status">
                {state}
              </span>
              <Button look="primary" busy={busy} onClick={() => void save()}>
                {action}
              </Button>
            </div>
          </div>
        )}
      </div>
    </DraftProvider>
  );
}

/** Focuses the field at a path, or at the closest parent path that has one. */
function focusPlace(frame: HTMLElement, path: string): void {
  for (let at = path; at !== ''; at = at.replace(/(\.[^.[\]]*|\[\d+\]|^[^.[\]]+)$/, '')) {
    const field = frame.querySelector<HTMLElement>(`[data-path="${CSS.escape(at)}"]`);
    if (!field) continue;
    for (let outer = field.closest('details'); outer; outer = outer.parentElement!.closest('details'))
      outer.open = true;
    field.focus();
    return;
  }
  frame.querySelector<HTMLElement>('[data-path=""]')?.focus();
}

function LeaveGuard({ changed, onDiscard }: { changed: boolean; onDiscard: () => void }) {
  const { status, proceed, reset } = useBlocker({
    // Another view of the same page loses no changes.
    shouldBlockFn: ({ current, next }) => changed && current.pathname !== next.pathname,
    enableBeforeUnload: () => changed,
    withResolver: true,
  });
  if (status !== 'blocked') return null;
  return (
    <Dialog title="Leave without saving?" onClose={reset}>
      <p>Your changes to this agent will be lost.</p>
      <div className="foot">
        <Button onClick={reset}>Stay</Button>
        <Button
          look="danger"
          onClick={() => {
            onDiscard();
            proceed();
          }}
        >
          Leave without saving
        </Button>
      </div>
    </Dialog>
  );
}
