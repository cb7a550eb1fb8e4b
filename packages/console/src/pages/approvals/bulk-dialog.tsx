// The second step of a decision on several calls: what they have in common, and what differs.
import type { Approval } from '@signalbox/client';
import { type FormEvent, useEffect, useId, useRef, useState } from 'react';
import { counted, toolTitle } from '../../lib/text-format.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { TextField } from '../../ui/field.tsx';
import { Notice } from '../../ui/notice.tsx';
import { PlainText } from '../../ui/text.tsx';
import { AgentName } from './approval-source.tsx';
import type { BulkDecision } from './bulk.ts';
import { MAX_REASON_CHARACTERS, useDoubleTapGuard } from './confirm.tsx';
import { type ApprovalGroup, differencesOf, groupsOf, inputLine, valueLine } from './groups.ts';

export function BulkDialog({
  approvals,
  decision,
  onConfirm,
  onClose,
}: {
  /** Pending ones that the user may decide; oldest first. */
  approvals: readonly Approval[];
  decision: 'approved' | 'denied';
  onConfirm: (decision: BulkDecision) => void;
  onClose: () => void;
}) {
  const [reason, setReason] = useState('');
  const confirm = useRef<HTMLButtonElement>(null);
  const taps = useDoubleTapGuard();
  const form = useId();
  const denies = decision === 'denied';
  const groups = groupsOf(approvals);
  const verb = denies ? 'Deny' : 'Approve';
  const calls = groups.length === 1 ? `${approvals.length} of ${groups[0]!.name}` : counted(approvals.length, 'call');
  const grants = [...new Set(approvals.filter(({ allowsSession }) => allowsSession).map(({ name }) => name))];

  useEffect(() => {
    taps.begin();
    if (!denies) confirm.current?.focus();
  }, [denies, taps]);

  function submit(event: FormEvent) {
    event.preventDefault();
    onConfirm({ decision, ...(reason.trim() && { reason: reason.trim() }) });
    onClose();
  }

  return (
    <Dialog title={`${verb} ${calls}?`} onClose={onClose} wide guarded>
      <form
        id={form}
        className="stack"
        onSubmit={submit}
        // A key held down is still the first press.
        onKeyDown={(event) => event.key === 'Enter' && event.repeat && event.preventDefault()}
        noValidate
      >
        <div className="bulk-calls">
          {groups.map((group) => (
            <Calls key={group.key} group={group} isOnly={groups.length === 1} />
          ))}
        </div>
        {!denies && grants.length > 0 && (
          <Notice kind="warn">
            <p>
              Approval is needed once per session for <code>{grants.join(', ')}</code>. Later calls in these sessions
              run without asking, whatever the input.
            </p>
          </Notice>
        )}
        <TextField
          label="Reason (optional)"
          hint={denies ? 'The agents see it.' : 'Saved with each approval.'}
          value={reason}
          maxLength={MAX_REASON_CHARACTERS}
          enterKeyHint="send"
          onChange={(event) => setReason(event.currentTarget.value)}
        />
        <div className="foot">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look={denies ? 'danger' : 'primary'} ref={confirm} onClick={taps.guard}>
            {verb} {approvals.length} now
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function Calls({ group: { name, agentId, approvals }, isOnly }: { group: ApprovalGroup; isOnly: boolean }) {
  const differences = differencesOf(approvals.map(({ input }) => input));
  const { same = [], differing = [] } = differences ?? {};
  const environments = [...new Set(approvals.map(({ environment }) => environment))].sort();
  return (
    <section className="stack tight">
      <h3>
        {isOnly ? '' : `${counted(approvals.length, 'call')} of `}
        <PlainText text={toolTitle(name)} /> <span className="quiet">by</span> <AgentName agentId={agentId} />{' '}
        <span className="quiet">in</span> {environments.join(', ')}
      </h3>
      {same.length > 0 && (
        <p className="quiet small">
          {approvals.length > 1 ? 'Same in all: ' : ''}
          {same.map(([field, value], at) => (
            <span key={field}>
              {at > 0 && ' · '}
              <PlainText text={`${field} ${valueLine(value)}`} />
            </span>
          ))}
        </p>
      )}
      {differing.length > 0 && (
        <div className="bulk-table">
          <table>
            <thead>
              <tr>
                {differing.map((field) => (
                  <th key={field} scope="col">
                    <PlainText text={field} />
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {approvals.map(({ operationId, input }) => (
                <tr key={operationId}>
                  {differing.map((field) => (
                    <td key={field}>
                      <Value input={input} field={field} />
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {!differences && (
        <ul>
          {approvals.map(({ operationId, input }) => (
            <li key={operationId}>
              <PlainText text={inputLine(input)} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Value({ input, field }: { input: unknown; field: string }) {
  const value = (input as Record<string, unknown>)[field];
  return value === undefined ? <span className="quiet">none</span> : <PlainText text={valueLine(value)} />;
}
