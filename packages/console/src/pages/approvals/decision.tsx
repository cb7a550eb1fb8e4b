// Deciding an approval takes two steps, so that no single slip decides. `Approve` or `Deny` opens the details and asks for
// confirmation; `A`, then Enter does the same. If two users decide at the same time, the second one sees who was first.
import { type Approval, SignalboxError } from '@signalbox/client';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { useApiMutation, useOrganization } from '../../organization.tsx';
import { toolTitle } from '../../text-format.ts';
import { Button } from '../../ui/button.tsx';
import { useToast } from '../../ui/toast.tsx';
import { Confirm, type DecisionInput, type Step } from './confirm.tsx';
import { Resolution } from './resolution.tsx';
import './approvals.css';

export { pressShortcut } from './shortcuts.ts';

/**
 * The buttons while the approval is pending, then what was decided and by whom. If a focusable element contains it, give that
 * element `onKeyDown={pressShortcut}`. `onDecided` is called after the user's own decision, when the buttons are gone.
 */
export function Decision({ approval, onDecided }: { approval: Approval; onDecided?: () => void }) {
  const { client, organizationId, user, may } = useOrganization();
  const queries = useQueryClient();
  const toast = useToast();
  const [step, setStep] = useState<Step>();
  // The service's response, until the list has caught up with it.
  const [answered, setAnswered] = useState<Approval>();
  // Someone else decided first.
  const [late, setLate] = useState(false);
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const underWay = useRef(false);
  const buttons = useRef<HTMLDivElement>(null);
  const resolve = useApiMutation(
    (_, { decision, ...more }: DecisionInput) => client.approvals.resolve(approval.operationId, { decision, ...more }),
    ['approvals', 'sessions', 'overview'],
  );

  const shown = answered ?? approval;
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

  async function answer(sent: DecisionInput) {
    if (underWay.current) return;
    underWay.current = true;
    setBusy(true);
    setError(undefined);
    try {
      const one = await resolve.mutateAsync(sent);
      const isOwn = one.resolvedBy?.id === user.userId && one.reason === (sent.reason ?? null) && takes(one, sent);
      keep(one);
      setLate(!isOwn);
      if (isOwn) toast(`${one.status === 'approved' ? 'Approved' : 'Denied'}: ${toolTitle(one.name)}`);
      onDecided?.();
    } catch (problem) {
      if (problem instanceof SignalboxError && problem.code === 'approval_already_resolved') await hearWho();
      else setError(problem);
    } finally {
      underWay.current = false;
      setBusy(false);
    }
  }

  async function hearWho() {
    try {
      const one = await client.approvals.get(approval.operationId);
      // Expired, but the service has not marked it yet.
      keep(one.status === 'pending' ? { ...one, status: 'expired' } : one);
      setLate(true);
      await queries.invalidateQueries({ queryKey: [organizationId, 'approvals'] });
    } catch (problem) {
      setError(problem);
    }
  }

  function back() {
    const from = step === 'deny' ? 'D' : step === 'edit' ? 'E' : 'A';
    setStep(undefined);
    setError(undefined);
    requestAnimationFrame(() => buttons.current?.querySelector<HTMLElement>(`[aria-keyshortcuts="${from}"]`)?.focus());
  }

  if (isDecided && !busy) return <Resolution approval={shown} late={late} />;
  if (!may('write')) {
    return <p className="quiet small">You need the member role to decide approvals.</p>;
  }
  if (step) {
    return (
      <Confirm
        approval={approval}
        step={step}
        busy={busy}
        error={error}
        onAnswer={(sent) => void answer(sent)}
        onCancel={back}
      />
    );
  }
  return (
    <div className="row decide" ref={buttons}>
      <Button look="primary" aria-keyshortcuts="A" onClick={() => setStep('approve')}>
        Approve
      </Button>
      <Button aria-keyshortcuts="D" onClick={() => setStep('deny')}>
        Deny
      </Button>
      <Button look="bare" aria-keyshortcuts="E" onClick={() => setStep('edit')}>
        Edit input
      </Button>
    </div>
  );
}

/** Whether the approval has the input that was sent with the decision. */
function takes(approval: Approval, { input }: DecisionInput): boolean {
  return JSON.stringify(approval.editedInput ?? null) === JSON.stringify(input ?? null);
}
