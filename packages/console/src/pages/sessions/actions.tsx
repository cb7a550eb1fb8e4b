// Interrupt, close, cancel, delete: what stops a Session, from the softest to the hardest.
import type { Session } from '@signalbox/client';
import { useState } from 'react';
import { useChange, useOrganization } from '../../organization.tsx';
import { Button } from '../../ui/button.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { Menu } from '../../ui/menu.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { useToast } from '../../ui/toast.tsx';
import { isBusy, isEnded } from './use-session.ts';

/** Stops the turn under way. Nothing where there is none, or where the person may not. */
export function Interrupt({ session }: { session: Session }) {
  const { may } = useOrganization();
  const toast = useToast();
  const { sessionId } = session;
  const interrupt = useChange((client, _: undefined) => client.sessions.interrupt(sessionId), ['sessions']);
  if (!may('write') || !isBusy(session)) return null;
  return (
    <>
      <Button
        small
        busy={interrupt.isPending}
        onClick={() =>
          interrupt.mutate(undefined, { onSuccess: () => toast('Interrupted: the turn is being stopped') })
        }
      >
        Interrupt
      </Button>
      {interrupt.error && <ErrorNotice error={interrupt.error} />}
    </>
  );
}

const endings = {
  close: {
    title: 'Close this Session?',
    action: 'Close the Session',
    about: 'A turn under way goes on to its end, and messages queued have theirs. Then the Session is completed.',
    done: 'The Session closes',
  },
  cancel: {
    title: 'Cancel this Session?',
    action: 'Cancel the Session',
    about:
      'It ends now, as cancelled, with its child Sessions; messages that are queued have no turn. A tool call that runs may still have its effect. To stop the turn alone, interrupt it.',
    done: 'Cancelled',
  },
  delete: {
    title: 'Delete this Session?',
    action: 'Delete it for good',
    about: 'Its transcript, journal and approvals go with it, and its child Sessions. This cannot be undone.',
    done: 'Deleted',
  },
} as const;
type Ending = keyof typeof endings;

/** The menu of a Session; `onDeleted` goes somewhere else. */
export function SessionMenu({ session, onDeleted }: { session: Session; onDeleted: () => void }) {
  const { may } = useOrganization();
  const [asked, setAsked] = useState<Ending>();
  if (!may('write')) return null;
  const items = isEnded(session)
    ? [{ label: 'Delete', danger: true, onSelect: () => setAsked('delete') }]
    : [
        { label: 'Close', onSelect: () => setAsked('close') },
        { label: 'Cancel', danger: true, onSelect: () => setAsked('cancel') },
      ];
  return (
    <>
      <Menu label="Actions for this Session" items={items} />
      {asked && <Confirm session={session} ending={asked} onClose={() => setAsked(undefined)} onDeleted={onDeleted} />}
    </>
  );
}

function Confirm({
  session: { sessionId, parentSessionId },
  ending,
  onClose,
  onDeleted,
}: {
  session: Session;
  ending: Ending;
  onClose: () => void;
  onDeleted: () => void;
}) {
  const toast = useToast();
  const { title, action, about, done } = endings[ending];
  const change = useChange(
    async (client, _: undefined) => {
      await client.sessions[ending](sessionId);
      if (ending === 'delete') onDeleted();
    },
    ['sessions', 'approvals', 'overview'],
  );
  return (
    <FormDialog
      title={title}
      action={action}
      danger={ending !== 'close'}
      onClose={onClose}
      submit={async () => {
        await change.mutateAsync(undefined);
        toast(done);
      }}
    >
      <p>{about}</p>
      {ending === 'delete' && parentSessionId && (
        <p className="quiet">It is a child: it can be deleted alone once the Session that opened it has ended.</p>
      )}
    </FormDialog>
  );
}
