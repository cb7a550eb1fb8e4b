// Links by which anyone can read a session: creating one, and revoking those that there are.
import type { Session, SessionShare } from '@signalbox/client';
import { useState } from 'react';
import { useApiMutation, useList } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { Code } from '../../ui/copy.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Checkbox, Select, TextField } from '../../ui/field.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { PlainText } from '../../ui/text.tsx';
import { inDays, Time } from '../../ui/time.tsx';
import { useToast } from '../../ui/toast.tsx';

const lifetimes = [
  { value: '1', label: '1 day' },
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
  { value: '365', label: '1 year' },
];

/** What the page is called without a title. */
const UNTITLED = 'Shared conversation';

export function ShareDialog({ session: { sessionId }, onClose }: { session: Session; onClose: () => void }) {
  const [title, setTitle] = useState('');
  const [days, setDays] = useState('7');
  const [includesTools, setIncludesTools] = useState(false);
  const create = useApiMutation(
    (client, _: undefined) =>
      client.sessions.share(sessionId, {
        ...(title.trim() !== '' && { title: title.trim() }),
        includesTools,
        expiresAt: inDays(Number(days)),
      }),
    ['sessions'],
  );
  const link = create.data?.link;
  return (
    <Dialog title="Share session" onClose={onClose}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          create.mutate(undefined);
        }}
      >
        <p className="quiet">
          Anyone with the link can read the conversation, including later messages, without signing in. The end user,
          metadata, costs and other sessions are not shown.
        </p>
        {link ? (
          <section className="stack tight" aria-label="The new link">
            <p>
              <strong>Copy the link now.</strong> It won’t be shown again.
            </p>
            <Code text={link} label="Copy link" />
          </section>
        ) : (
          <>
            <div className="share-fields">
              <TextField
                label="Title"
                placeholder={UNTITLED}
                maxLength={200}
                value={title}
                onChange={(event) => setTitle(event.currentTarget.value)}
              />
              <Select
                label="Expires after"
                value={days}
                onChange={(event) => setDays(event.currentTarget.value)}
                options={lifetimes}
              />
            </div>
            <Checkbox
              label="Show tool calls with their inputs and results"
              checked={includesTools}
              onChange={(event) => setIncludesTools(event.currentTarget.checked)}
            />
          </>
        )}
        {create.error && <ErrorNotice error={create.error} />}
        <Shares sessionId={sessionId} />
        <div className="foot">
          <Button onClick={onClose}>{link ? 'Done' : 'Cancel'}</Button>
          {!link && (
            <Button type="submit" look="primary" busy={create.isPending}>
              Create link
            </Button>
          )}
        </div>
      </form>
    </Dialog>
  );
}

function Shares({ sessionId }: { sessionId: string }) {
  const shares = useList(['sessions', sessionId, 'shares'], (client, page) => client.sessions.shares(sessionId, page));
  if (shares.error) return <ErrorNotice error={shares.error} retry={() => shares.refetch()} />;
  if (!shares.data || shares.data.length === 0) return null;
  return (
    <section className="stack tight" aria-labelledby="shares">
      <h3 id="shares">Active links</h3>
      <ul className="shares">
        {shares.data.map((share) => (
          <Share share={share} key={share.shareId} />
        ))}
      </ul>
    </section>
  );
}

function Share({ share: { shareId, sessionId, title, includesTools, createdBy, expiresAt } }: { share: SessionShare }) {
  const toast = useToast();
  const revoke = useApiMutation((client, _: undefined) => client.sessions.unshare(sessionId, shareId), ['sessions']);
  return (
    <li>
      <div>
        <strong>
          <PlainText text={title ?? UNTITLED} />
        </strong>
        <p className="quiet small">
          {includesTools ? 'With tool calls' : 'Messages only'}, by <PlainText text={createdBy} />, expires{' '}
          <Time at={expiresAt} />
        </p>
        {revoke.error && <ErrorNotice error={revoke.error} />}
      </div>
      <Button
        small
        aria-label={`Revoke ${title ?? 'link'}`}
        busy={revoke.isPending}
        onClick={() => revoke.mutate(undefined, { onSuccess: () => toast('Link revoked') })}
      >
        Revoke
      </Button>
    </li>
  );
}
