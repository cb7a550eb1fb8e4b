// Deciding an approval takes two steps, so that no single slip decides. `Approve` or `Deny` opens the details and asks for
// confirmation; `A`, then Enter does the same. The outcome is shown at once, and taken back if the service refuses the decision. If two
// users decide at the same time, the second one sees who was first.
import { type Approval, SignalboxError } from '@signalbox/client';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useId, useRef, useState } from 'react';
import { useApiMutation, useOrganization } from '../../data/organization.tsx';
import { toolTitle } from '../../lib/text-format.ts';
import { Button } from '../../ui/button.tsx';
import { useToast } from '../../ui/toast.tsx';
import { ApproversInfo } from './approvers.tsx';
import { progressText } from './approvers-text.ts';
import { Confirm, type DecisionInput, type Step } from './confirm.tsx';
import { lateWords, Resolution } from './resolution.tsx';
import './approvals.css';

export { pressShortcut } from './shortcuts.ts';

/**
 * The buttons while the approval is pending, then what was decided and by whom. If a focusable element contains it, give that
 * element `onKeyDown={pressShortcut}`. `onDecided` is called after the user's own decision, when the buttons are gone.
 */
export function Decision({
  approval,
  isLine = false,
  onBegin,
  onDecided,
}: {
  approval: Approval;
  /** Until the user begins: only the buttons, or in few words why there are none. */
  isLine?: boolean;
  /** The user has to see the whole input from now on. */
  onBegin?: () => void;
  onDecided?: () => void;
}) {
  const { client, organizationId, user, mayDecide } = useOrganization();
  const queries = useQueryClient();
  const toast = useToast();
  const [step, setStep] = useState<Step>();
  // An edited input that another approver has approved, if the user approves that one.
  const [joined, setJoined] = useState<{ input: unknown }>();
  // What the user decided, if the service has not responded yet or has refused it.
  const [sent, setSent] = useState<DecisionInput>();
  // The service's response, until the list has caught up with it.
  const [answered, setAnswered] = useState<Approval>();
  // Someone else decided first.
  const [late, setLate] = useState(false);
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const underWay = useRef(false);
  const isMounted = useIsMounted();
  const buttons = useRef<HTMLDivElement>(null);
  const reason = useId();
  const resolve = useApiMutation(
    (_, { decision, ...more }: DecisionInput) => client.approvals.resolve(approval.operationId, { decision, ...more }),
    ['approvals', 'sessions', 'overview'],
  );

  const expected = busy && sent ? expectedOf(approval, sent, user) : undefined;
  const shown = expected ?? (answered && isNewer(answered, approval) ? answered : approval);
  const isDecided = shown.status !== 'pending';
  const wasAtIt = step !== undefined && isDecided && answered === undefined;
  // Notifies a user who is in the middle of a decision that it has been made.
  useEffect(() => {
    if (wasAtIt && !underWay.current) setLate(true);
  }, [wasAtIt]);

  function keep(one: Approval) {
    queries.setQueryData([organizationId, 'approvals', one.operationId], one);
    setAnswered(one);
  }

  async function answer(decision: DecisionInput) {
    if (underWay.current) return;
    underWay.current = true;
    setBusy(true);
    setSent(decision);
    setError(undefined);
    const title = toolTitle(approval.name);
    const isExpected = expectedOf(approval, decision, user) !== undefined;
    if (isExpected) onDecided?.();
    try {
      const one = await resolve.mutateAsync(decision);
      keep(one);
      setSent(undefined);
      if (one.status === 'pending') {
        setStep(undefined);
        toast(`Approved, ${one.progress.approved} of ${one.progress.required}: ${title}`);
        return;
      }
      const isOwn =
        one.resolvedBy?.id === user.userId && one.reason === (decision.reason ?? null) && takes(one, decision);
      setLate(!isOwn);
      if (isOwn) toast(`${one.status === 'approved' ? 'Approved' : 'Denied'}: ${title}`);
      if (!isExpected) onDecided?.();
    } catch (problem) {
      if (problem instanceof SignalboxError && problem.code === 'approval_already_resolved') await hearWho();
      else refuse(problem);
    } finally {
      underWay.current = false;
      setBusy(false);
    }
  }

  /** A user who has left in the meantime saw the decision as made. */
  function refuse(problem: unknown) {
    setError(problem);
    if (!isMounted.current) toast(`Not decided: ${toolTitle(approval.name)}. Open Approvals to try again.`);
  }

  async function hearWho() {
    try {
      const one = await client.approvals.get(approval.operationId);
      // Expired, but the service has not marked it yet.
      const now: Approval = one.status === 'pending' ? { ...one, status: 'expired' } : one;
      keep(now);
      setSent(undefined);
      setLate(true);
      if (!isMounted.current) toast(lateWords(now, now.resolvedBy?.id === user.userId));
      await queries.invalidateQueries({ queryKey: [organizationId, 'approvals'] });
    } catch (problem) {
      refuse(problem);
    }
  }

  function back() {
    const from = step === 'deny' ? 'D' : step === 'edit' ? 'E' : 'A';
    setStep(undefined);
    setSent(undefined);
    setError(undefined);
    requestAnimationFrame(() => buttons.current?.querySelector<HTMLElement>(`[aria-keyshortcuts="${from}"]`)?.focus());
  }

  if (isDecided && (!busy || expected)) {
    return (
      <div className="stack tight outcome" aria-busy={busy || undefined}>
        <Resolution approval={shown} late={late} />
        <ApproversInfo approval={shown} />
      </div>
    );
  }
  if (!mayDecide && isLine) return null;
  if (!mayDecide) {
    return (
      <>
        <ApproversInfo approval={shown} />
        <p className="quiet small">You need the approver role to decide approvals.</p>
      </>
    );
  }
  if (step) {
    return (
      <Confirm
        approval={shown}
        step={step}
        {...(joined && step === 'approve' && { joined })}
        {...(sent && { sent })}
        busy={busy}
        error={error}
        onAnswer={(decision) => void answer(decision)}
        onCancel={back}
      />
    );
  }
  const { refusal } = shown;
  const hasApproved = refusal?.code === 'already_decided_by_you';
  const described = refusal ? { 'aria-describedby': reason } : {};
  const begin = (next: Step, input?: { input: unknown }) => {
    setJoined(input);
    setStep(next);
    onBegin?.();
  };
  if (isLine && refusal) {
    return (
      <p className="quiet small not-mine" title={refusal.message}>
        {hasApproved ? progressText(shown) : 'Not yours to decide'}
      </p>
    );
  }
  return (
    <div className="stack tight decision">
      {!isLine && (
        <ApproversInfo
          approval={shown}
          {...((!refusal || hasApproved) && { onJoin: (input) => begin('approve', { input }) })}
        />
      )}
      {refusal && (
        <p className="quiet small" id={reason}>
          {refusal.message}
        </p>
      )}
      <div className="row decide" ref={buttons}>
        <Button
          look="primary"
          aria-keyshortcuts="A"
          disabled={refusal !== null}
          {...described}
          onClick={() => begin('approve')}
        >
          Approve
        </Button>
        <Button
          aria-keyshortcuts="D"
          disabled={refusal !== null && !hasApproved}
          {...(!hasApproved && described)}
          onClick={() => begin('deny')}
        >
          Deny
        </Button>
        <Button
          look="bare"
          aria-keyshortcuts="E"
          disabled={refusal !== null && !hasApproved}
          {...(!hasApproved && described)}
          onClick={() => begin('edit')}
        >
          Edit input
        </Button>
      </div>
    </div>
  );
}

/**
 * The approval as it will be, if refusals of this decision are rare. An edited input can be invalid, and of several approvers only the
 * service knows who completes it.
 */
function expectedOf(
  approval: Approval,
  { decision, reason, input }: DecisionInput,
  { userId, name }: { userId: string; name: string },
): Approval | undefined {
  if (input !== undefined || (decision === 'approved' && approval.progress.required > 1)) return undefined;
  const resolvedBy = { type: 'user' as const, id: userId, name, onBehalfOf: null };
  return { ...approval, status: decision, reason: reason ?? null, resolvedBy };
}

function useIsMounted() {
  const isMounted = useRef(false);
  useEffect(() => {
    isMounted.current = true;
    return () => {
      isMounted.current = false;
    };
  }, []);
  return isMounted;
}

/** Whether the service's response has something that the list does not have yet. */
function isNewer(answered: Approval, listed: Approval): boolean {
  if (answered.status !== 'pending') return true;
  return listed.status === 'pending' && listed.decisions.length < answered.decisions.length;
}

/** Whether the approval has the input that was sent with the decision. */
function takes(approval: Approval, { input }: DecisionInput): boolean {
  return JSON.stringify(approval.editedInput ?? null) === JSON.stringify(input ?? null);
}
