// Closing and cancelling the sessions that are selected, or one of them by the menu of its row.
import type { ListedSession, Signalbox } from '@signalbox/client';
import { useState } from 'react';
import { useApiMutation, useOrganization } from '../../data/organization.tsx';
import { counted } from '../../lib/text-format.ts';
import { Button } from '../../ui/button.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { useToast } from '../../ui/toast.tsx';
import { isEnded } from './use-session.ts';

export type EndAction = 'close' | 'cancel';

const words = {
  close: {
    verb: 'Close',
    done: 'closed, or closing after the running turn',
    about: 'Running turns finish, and queued messages still get their turns. Then the sessions are completed.',
  },
  cancel: {
    verb: 'Cancel',
    done: 'cancelled',
    about:
      'The sessions and their child sessions end immediately. Queued messages are not processed. A running tool call may still have its effect.',
  },
};

// The maximum of a request.
const AT_ONCE = 500;

async function endAll(client: Signalbox, action: EndAction, ids: readonly string[]) {
  const failed: string[] = [];
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    const sessionIds = ids.slice(at, at + AT_ONCE);
    const change = action === 'cancel' ? client.sessions.cancelMany : client.sessions.closeMany;
    const { data } = await change.call(client.sessions, { sessionIds });
    failed.push(...data.flatMap(({ error }) => (error ? [error.message] : [])));
  }
  return failed;
}

/** The buttons of the bar. Sessions that have ended are left out. */
export function EndButtons({ sessions, onDone }: { sessions: readonly ListedSession[]; onDone: () => void }) {
  const { may } = useOrganization();
  const [asked, setAsked] = useState<EndAction>();
  const open = sessions.filter((session) => !isEnded(session));
  if (!may('write')) return null;
  if (open.length === 0) {
    return <span className="quiet small">{sessions.length === 1 ? 'It has ended.' : 'All of them have ended.'}</span>;
  }
  return (
    <>
      <Button small onClick={() => setAsked('close')}>
        Close {counted(open.length, 'open session')}
      </Button>
      <Button small look="danger" onClick={() => setAsked('cancel')}>
        Cancel {counted(open.length, 'open session')}
      </Button>
      {asked && <EndDialog action={asked} sessions={open} onClose={() => setAsked(undefined)} onDone={onDone} />}
    </>
  );
}

export function EndDialog({
  action,
  sessions,
  onClose,
  onDone,
}: {
  action: EndAction;
  sessions: readonly ListedSession[];
  onClose: () => void;
  onDone?: () => void;
}) {
  const toast = useToast();
  const { verb, done, about } = words[action];
  // The list may change while the dialog is open.
  const [ids] = useState(() => sessions.map(({ sessionId }) => sessionId));
  const change = useApiMutation(
    (client, _: undefined) => endAll(client, action, ids),
    ['sessions', 'approvals', 'overview'],
  );
  const count = counted(ids.length, 'session');
  return (
    <FormDialog
      title={`${verb} ${count}?`}
      action={`${verb} ${count}`}
      danger={action === 'cancel'}
      dismiss={action === 'cancel' ? 'Keep sessions' : 'Cancel'}
      onClose={onClose}
      submit={async () => {
        const failed = await change.mutateAsync(undefined);
        const [first] = failed;
        const changed = counted(ids.length - failed.length, 'session');
        toast(first === undefined ? `${changed} ${done}` : `${changed} ${done}, ${failed.length} not: ${first}`);
        onDone?.();
      }}
    >
      <p>{about}</p>
    </FormDialog>
  );
}
