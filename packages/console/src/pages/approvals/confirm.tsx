// The second step of a decision: its details and the button that confirms it.
import type { Approval, ResolveApproval } from '@signalbox/client';
import { type FormEvent, type KeyboardEvent, type MouseEvent, useEffect, useId, useRef, useState } from 'react';
import { toolTitle } from '../../lib/text-format.ts';
import { Button } from '../../ui/button.tsx';
import { Checkbox, TextField } from '../../ui/field.tsx';
import { ErrorNotice, fieldError, Notice } from '../../ui/notice.tsx';
import { draftOf, type Problem, problemsOf, readDraft, same } from './input-draft.ts';
import { InputEditor } from './input-editor.tsx';
import { InputView } from './input-view.tsx';
import { hasFocusNear } from './resolution.tsx';

export type Step = 'approve' | 'edit' | 'deny' | undefined;
export type DecisionInput = Pick<ResolveApproval, 'decision' | 'reason' | 'input' | 'scope'>;

// The longest gap of an accidental double tap.
const DOUBLE_TAP_MS = 500;
export const MAX_REASON_CHARACTERS = 2000;

export function Confirm({
  approval,
  step,
  joined,
  sent,
  busy,
  error,
  onAnswer,
  onCancel,
}: {
  approval: Approval;
  step: NonNullable<Step>;
  /** The input that another approver has edited and approved, if the user approves that one. */
  joined?: { input: unknown };
  /** What the user sent and the service refused, to begin with. */
  sent?: DecisionInput;
  busy: boolean;
  error: unknown;
  onAnswer: (answer: DecisionInput) => void;
  onCancel: () => void;
}) {
  const [reason, setReason] = useState(sent?.reason ?? '');
  const [forSession, setForSession] = useState(sent?.scope === 'session');
  const [isAgain] = useState(sent !== undefined);
  const [draft, setDraft] = useState(() => draftOf(approval.input));
  const [ownProblems, setOwnProblems] = useState<Problem[]>([]);
  const form = useRef<HTMLFormElement>(null);
  const confirm = useRef<HTMLButtonElement>(null);
  const taps = useDoubleTapGuard();
  const granting = useId();
  const denies = step === 'deny';
  const words = toolTitle(approval.name);

  useEffect(() => {
    taps.begin();
    // After a refusal the user may be at another approval, where a key must not decide this one.
    if (isAgain && !hasFocusNear(form.current)) return;
    const first =
      step === 'approve' ? confirm.current : form.current?.querySelector<HTMLElement>('input, textarea, select');
    first?.focus();
  }, [step, taps, isAgain]);

  const refused = step === 'edit' ? fieldError(error, 'input') : undefined;
  const fields = draft.as === 'form' ? Object.keys(draft.fields) : [];
  const problems = ownProblems.length > 0 ? ownProblems : refused ? problemsOf(refused, fields) : [];
  // Moves the focus to the first error.
  useEffect(() => {
    if (refused || ownProblems.length > 0) form.current?.querySelector<HTMLElement>('[aria-invalid]')?.focus();
  }, [refused, ownProblems]);

  function submit(event: FormEvent) {
    event.preventDefault();
    if (busy) return;
    const why = reason.trim() ? { reason: reason.trim() } : {};
    if (denies) return onAnswer({ decision: 'denied', ...why });
    const scope = forSession ? { scope: 'session' as const } : {};
    if (step === 'approve') return onAnswer({ decision: 'approved', ...why, ...scope, ...joined });
    const read = readDraft(draft, approval.input);
    if ('problems' in read) return setOwnProblems(read.problems);
    setOwnProblems([]);
    const input = same(read.value, approval.input) ? {} : { input: read.value };
    onAnswer({ decision: 'approved', ...why, ...scope, ...input });
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.key === 'Escape') {
      event.stopPropagation();
      onCancel();
    }
    // A key held down is still the first press.
    if (event.key === 'Enter' && event.repeat) event.preventDefault();
  }

  return (
    <form className="confirm stack" ref={form} onSubmit={submit} onKeyDown={onKeyDown} noValidate>
      <h3>{denies ? `Deny “${words}”?` : step === 'edit' ? `Edit the input of “${words}”` : `Approve “${words}”?`}</h3>
      {joined && (
        <div className="stack tight">
          <p>With the edited input:</p>
          <InputView value={joined.input} before={approval.input} />
        </div>
      )}
      {step === 'edit' && (
        <InputEditor
          original={approval.input}
          draft={draft}
          onChange={setDraft}
          problems={problems}
          onDone={() => confirm.current?.focus()}
        />
      )}
      <TextField
        label="Reason (optional)"
        hint={denies ? 'The agent sees it.' : 'Saved with the approval.'}
        value={reason}
        maxLength={MAX_REASON_CHARACTERS}
        enterKeyHint="send"
        onChange={(event) => setReason(event.currentTarget.value)}
        error={fieldError(error, 'reason')}
      />
      {!denies && approval.allowsSession && (
        <Notice kind="warn">
          <p id={granting}>
            This tool needs approval once per session. Later calls of <code>{approval.name}</code> in this session run
            without asking, whatever the input.
          </p>
        </Notice>
      )}
      {!denies && !approval.allowsSession && (
        <Checkbox
          label={`Don’t ask again for ${approval.name} in this session, whatever the input`}
          checked={forSession}
          onChange={(event) => setForSession(event.currentTarget.checked)}
        />
      )}
      {error !== undefined && refused === undefined && <ErrorNotice error={error} />}
      <div className="row">
        <Button
          type="submit"
          look={denies ? 'danger' : 'primary'}
          busy={busy}
          ref={confirm}
          onClick={taps.guard}
          {...(!denies && approval.allowsSession && { 'aria-describedby': granting })}
        >
          {denies ? 'Deny now' : 'Approve now'}
        </Button>
        <Button onClick={onCancel}>Cancel</Button>
      </div>
    </form>
  );
}

/** For the button that appears where another one was pressed: `guard` ignores the second tap of a double tap that began there. */
export function useDoubleTapGuard() {
  return useState(() => {
    let began = Number.POSITIVE_INFINITY;
    return {
      begin() {
        began = performance.now();
      },
      guard(event: MouseEvent) {
        // Clicks by keyboard have no `detail`.
        if (event.detail > 0 && performance.now() - began < DOUBLE_TAP_MS) event.preventDefault();
      },
    };
  })[0];
}
