import type { Session } from '@signalbox/client';
import { Badge, Status } from '../../ui/badge.tsx';
import { waitingText } from './session-text.ts';

/** The status of a session, with what it waits for, or the code of the error with which its last turn failed. */
export function SessionStatus({ session }: { session: Session }) {
  const { status, error } = session;
  return (
    <>
      <Status value={status} />{' '}
      {error && status === 'idle' && (
        <>
          <Badge tone="bad">turn failed</Badge>{' '}
        </>
      )}
      <span className="quiet small">{error ? error.code : waitingText(session)}</span>
    </>
  );
}
