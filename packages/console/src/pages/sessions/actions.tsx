// Retry, interrupt, close, cancel, delete: what a user does with a whole session. The last four stop it, from the softest to the
// hardest.
import { type RetryWithout, type Session, SignalboxError } from '@signalbox/client';
import { useNavigate } from '@tanstack/react-router';
import { CircleCheck, CircleX, FlaskConical, Link2, type LucideIcon, Share2, Shrink, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { useApiMutation, useOrganization } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { Menu, type MenuItem } from '../../ui/menu.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { PlainText } from '../../ui/text.tsx';
import { useToast } from '../../ui/toast.tsx';
import type { Entry } from './conversation.ts';
import { leftOutChoices } from './left-out-text.ts';
import { useCopyLink } from './use-copy-link.ts';
import { isBusy, isEnded } from './use-session.ts';

/** Stops the current turn. Renders nothing if no turn runs or the role does not allow it. */
export function Interrupt({ session }: { session: Session }) {
  const { may } = useOrganization();
  const toast = useToast();
  const { sessionId } = session;
  const interrupt = useApiMutation((client, _: undefined) => client.sessions.interrupt(sessionId), ['sessions']);
  if (!may('write') || !isBusy(session)) return null;
  return (
    <>
      <Button
        small
        busy={interrupt.isPending}
        onClick={() => interrupt.mutate(undefined, { onSuccess: () => toast('Interrupted. The turn is stopping.') })}
      >
        Interrupt
      </Button>
      {interrupt.error && <ErrorNotice error={interrupt.error} />}
    </>
  );
}

const CHOICES_MAX = 5;

/**
 * Continues the turn that failed, as it is or without what its provider refuses. Renders nothing if the session has ended or the role does
 * not allow it.
 */
export function Retry({ session, entries }: { session: Session; entries: readonly Entry[] }) {
  const { may } = useOrganization();
  const toast = useToast();
  const { sessionId } = session;
  const retry = useApiMutation(
    (client, without: RetryWithout | undefined) => client.sessions.retry(sessionId, without && { without }),
    ['sessions'],
  );
  if (!may('write') || session.status !== 'idle') return null;
  const { retryWithout } = session.error ?? {};
  const choices = retryWithout ? leftOutChoices(retryWithout, entries) : [];
  const all = choices.length > 1 ? [{ name: `all ${choices.length}`, without: retryWithout! }] : [];
  const again = (without?: RetryWithout) =>
    retry.mutate(without, {
      onSuccess: () => toast(without ? 'The turn continues without it.' : 'The turn continues.'),
    });
  return (
    <>
      <p className="quiet">
        The next message starts another turn. A retry continues this one: tool calls that have a result are not
        repeated.
      </p>
      {choices.length > 0 && (
        <p className="quiet">
          What is left out stays in the conversation. The model does not get it any more.
          {choices.length > 1 && ' The provider refuses one of several: one may be enough.'}
        </p>
      )}
      <div className="row retries">
        {[...choices.slice(0, CHOICES_MAX), ...all].map(({ name, without }) => (
          <Button key={name} small look="primary" busy={retry.isPending} onClick={() => again(without)}>
            <PlainText text={`Continue without ${name}`} />
          </Button>
        ))}
        <Button small busy={retry.isPending} onClick={() => again()}>
          Retry turn
        </Button>
      </div>
      {retry.error && <ErrorNotice error={retry.error} />}
    </>
  );
}

const endings = {
  close: {
    title: 'Close this session?',
    action: 'Close session',
    about:
      'The running turn finishes, and queued messages still get their turns. Then the session is completed and accepts no more messages.',
    done: 'Session closing',
  },
  cancel: {
    title: 'Cancel this session?',
    action: 'Cancel session',
    about:
      'The session and its child sessions end immediately. Queued messages are not processed. A running tool call may still have its effect. To stop only the turn, interrupt it instead.',
    done: 'Session cancelled',
  },
  delete: {
    title: 'Delete this session?',
    action: 'Delete session',
    about:
      'Its transcript, journal, approvals and child sessions are deleted too. Forks stay, with the messages that they share. This can’t be undone.',
    done: 'Session deleted',
  },
} as const;
type Ending = keyof typeof endings;

/** The menu of a session. `onDeleted` leaves its page. `onShare` is for a page without room for its own button. */
export function SessionMenu({
  session,
  onShare,
  onDeleted,
}: {
  session: Session;
  onShare?: () => void;
  onDeleted: () => void;
}) {
  const { organizationId, may } = useOrganization();
  const navigate = useNavigate();
  const toast = useToast();
  const [asked, setAsked] = useState<Ending>();
  const copyLink = useCopyLink(session.sessionId);
  const compact = useApiMutation((client, _: undefined) => client.sessions.compact(session.sessionId), ['sessions']);
  const items: MenuItem[] = [{ label: 'Copy link', icon: Link2, onSelect: () => void copyLink() }];
  if (onShare) items.push({ label: 'Share', icon: Share2, onSelect: onShare });
  if (may('write')) {
    if (session.status === 'idle' && session.turn > 0) {
      const words = { onSuccess: () => toast('Summarizing older messages for the model'), onError: sayWhy };
      items.push({ label: 'Compact', icon: Shrink, onSelect: () => compact.mutate(undefined, words) });
    }
    const { sessionId, turn } = session;
    if (turn > 0) {
      items.push({
        label: 'Open in playground',
        icon: FlaskConical,
        onSelect: () =>
          void navigate({
            to: '/$organizationId/playground',
            params: { organizationId },
            search: { session: sessionId, turn },
          }),
      });
    }
    items.push(
      ...(isEnded(session)
        ? [ending('Delete session', 'delete', Trash2)]
        : [ending('Close session', 'close', CircleCheck), ending('Cancel session', 'cancel', CircleX)]),
    );
  }

  function ending(label: string, which: Ending, icon: LucideIcon): MenuItem {
    return { label, icon, danger: which !== 'close', group: 'ending', onSelect: () => setAsked(which) };
  }
  function sayWhy(error: Error) {
    toast(error instanceof SignalboxError && error.detail ? error.detail : 'The session could not be compacted.');
  }

  return (
    <>
      <Menu label="Actions for this session" items={items} />
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
  const change = useApiMutation(
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
      dismiss={ending === 'cancel' ? 'Keep session' : 'Cancel'}
      onClose={onClose}
      submit={async () => {
        await change.mutateAsync(undefined);
        toast(done);
      }}
    >
      <p>{about}</p>
      {ending === 'delete' && parentSessionId && (
        <p className="quiet">
          This is a child session. You can delete it on its own once its parent session has ended.
        </p>
      )}
    </FormDialog>
  );
}
