import type { Approval } from '@signalbox/client';
import { useEffect, useRef } from 'react';
import { useOrganization } from '../../data/organization.tsx';
import { Status } from '../../ui/badge.tsx';
import { LongText, PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { InputView } from './input-view.tsx';

/** What was decided, by whom, when and why. `late`: the user tried to decide, but someone else was first. */
export function Resolution({ approval, late }: { approval: Approval; late?: boolean }) {
  const { user } = useOrganization();
  const box = useRef<HTMLDivElement>(null);
  const { status, reason, resolvedBy, resolvedAt, editedInput } = approval;
  // The focused button is gone, unless the user is elsewhere by now.
  useEffect(() => {
    if (late && hasFocusNear(box.current)) box.current?.focus();
  }, [late]);
  return (
    <div className={late ? 'notice warn' : 'stack tight'} ref={box} tabIndex={-1} role={late ? 'alert' : undefined}>
      {late && (
        <strong>
          <PlainText text={lateWords(approval, resolvedBy?.id === user.userId)} />
        </strong>
      )}
      <p>
        <Status value={status} />{' '}
        {resolvedBy ? (
          <>
            by <PlainText text={nameOf(approval, user.userId)} />
            {resolvedBy.onBehalfOf && (
              <>
                {' '}
                on behalf of <PlainText text={resolvedBy.onBehalfOf} />
              </>
            )}
          </>
        ) : (
          undecided[status]
        )}
        {resolvedAt && (
          <>
            , <Time at={resolvedAt} />
          </>
        )}
      </p>
      {reason !== null && (
        <p>
          Reason: <LongText text={reason} />
        </p>
      )}
      {editedInput !== null && editedInput !== undefined && (
        <div className="stack tight">
          <p>Approved with an edited input:</p>
          <InputView value={editedInput} before={approval.input} />
        </div>
      )}
    </div>
  );
}

/** Whether the focus is in the item of this element, or nowhere. */
export function hasFocusNear(element: Element | null): boolean {
  const { activeElement } = document;
  const item = element?.closest('[data-item]') ?? element;
  return !activeElement || activeElement === document.body || item?.contains(activeElement) === true;
}

const undecided: Partial<Record<Approval['status'], string>> = {
  expired: 'no decision in time',
  cancelled: 'no longer needed because the session ended or moved on',
};

/** The name of the person who decided, for the user with this id. */
export function nameOf({ resolvedBy }: Approval, userId: string): string {
  if (!resolvedBy) return 'no one';
  if (resolvedBy.id === userId) return 'you';
  return resolvedBy.type === 'api_key' ? `${resolvedBy.name} (API key)` : resolvedBy.name;
}

/** What is said to a user who was too late. */
export function lateWords(approval: Approval, isOwn: boolean): string {
  if (approval.status === 'expired') return 'Too late: the approval expired. Your decision was not used.';
  if (approval.status === 'cancelled') return 'This approval is no longer needed. Your decision was not used.';
  const what = approval.status === 'approved' ? 'approved' : 'denied';
  if (isOwn) return `You already ${what} this elsewhere. This decision was not used.`;
  return `${nameOf(approval, '')} already ${what} it. Your decision was not used.`;
}
