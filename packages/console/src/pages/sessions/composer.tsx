import type { Session } from '@signalbox/client';
import { type KeyboardEvent, useRef, useState } from 'react';
import { useApiMutation, useOrganization } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { TextArea } from '../../ui/field.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Segmented } from '../../ui/segmented.tsx';
import { Interrupt } from './actions.tsx';
import { AttachButton, AttachmentList, contentOf, useAttachments } from './attachments.tsx';
import { emptyMessage, type UnsentMessage, type UnsentStore, useUnsentMessage } from './unsent-message.ts';
import { isBusy, isEnded } from './use-session.ts';

export function Composer({ session, unsent, onSent }: { session: Session; unsent: UnsentStore; onSent: () => void }) {
  const { may } = useOrganization();
  const { sessionId } = session;
  const message = useUnsentMessage(unsent);
  const set = (changed: Partial<UnsentMessage>) => unsent.change((before) => ({ ...before, ...changed }));
  const box = useRef<HTMLFormElement>(null);
  const [error, setError] = useState<unknown>();
  const send = useApiMutation(
    (client, sent: UnsentMessage) =>
      client.sessions.sendMessage(sessionId, { content: contentOf(sent), onBusy: sent.onBusy }),
    ['sessions'],
  );
  const { attachments } = message;
  const files = useAttachments(session.environment, attachments, (change) =>
    unsent.change((before) => ({
      ...before,
      attachments: typeof change === 'function' ? change(before.attachments) : change,
    })),
  );
  const isUploading = attachments.some(({ fileId, error }) => !fileId && !error);
  const isEmpty = message.text.trim() === '' && !attachments.some(({ fileId }) => fileId);
  if (isEnded(session)) return <p className="quiet">This session has ended and accepts no more messages.</p>;
  if (!may('write')) {
    return <p className="quiet">You need the member role to send messages.</p>;
  }

  async function submit() {
    if (send.isPending || isUploading || isEmpty) return;
    setError(undefined);
    try {
      await send.mutateAsync(message);
      set(emptyMessage);
      onSent();
    } catch (problem) {
      setError(problem);
    }
    box.current?.querySelector('textarea')?.focus();
  }

  function onKeyDown(event: KeyboardEvent) {
    // This Enter ends the composition of a character (Japanese, Chinese).
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    void submit();
  }

  return (
    <form
      className="composer"
      ref={box}
      data-over={files.isOver || undefined}
      {...files.dropTarget}
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      {error !== undefined && <ErrorNotice error={error} />}
      {isBusy(session) && (
        <div className="row apart">
          <Segmented
            label="A turn is running. Process the message"
            value={message.onBusy}
            onChange={(onBusy) => set({ onBusy })}
            options={[
              { value: 'queue', label: 'After this turn' },
              { value: 'steer', label: 'Now (stop this turn)' },
            ]}
          />
          <Interrupt session={session} />
        </div>
      )}
      <div className="box">
        <AttachmentList attachments={attachments} onRemove={files.remove} />
        <div className="line">
          <AttachButton onFiles={files.add} disabled={send.isPending} />
          <TextArea
            label="Message"
            quiet
            rows={1}
            placeholder="Write a message…"
            enterKeyHint="send"
            title="Enter to send, Shift Enter for a new line. Drop or paste files to attach them."
            maxLength={500_000}
            value={message.text}
            readOnly={send.isPending}
            onChange={(event) => set({ text: event.currentTarget.value })}
            onKeyDown={onKeyDown}
          />
          <Button type="submit" look="primary" busy={send.isPending} disabled={isEmpty || isUploading}>
            Send
          </Button>
        </div>
      </div>
    </form>
  );
}
