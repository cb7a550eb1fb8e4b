import type { Session } from '@signalbox/client';
import { type KeyboardEvent, useId, useRef, useState } from 'react';
import { useApiMutation, useOrganization } from '../../organization.tsx';
import { Button } from '../../ui/button.tsx';
import { TextArea } from '../../ui/field.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { isBusy, isEnded } from './use-session.ts';

/** Text that is not sent yet. The parent of the message box keeps it, so that it outlives the box. */
export interface MessageDraft {
  text: string;
  onBusy: 'queue' | 'steer';
}

export const emptyDraft: MessageDraft = { text: '', onBusy: 'queue' };

export function Composer({
  session,
  draft,
  onDraft,
  onSent,
}: {
  session: Session;
  draft: MessageDraft;
  onDraft: (draft: MessageDraft) => void;
  onSent: () => void;
}) {
  const { may } = useOrganization();
  const { sessionId } = session;
  const box = useRef<HTMLFormElement>(null);
  const [error, setError] = useState<unknown>();
  const name = useId();
  const send = useApiMutation(
    (client, { text, onBusy }: MessageDraft) => client.sessions.sendMessage(sessionId, { content: text, onBusy }),
    ['sessions'],
  );
  if (isEnded(session)) return <p className="quiet">This session has ended and accepts no more messages.</p>;
  if (!may('write')) {
    return <p className="quiet">You need the member role to send messages.</p>;
  }

  async function submit() {
    if (send.isPending || draft.text.trim() === '') return;
    setError(undefined);
    try {
      await send.mutateAsync(draft);
      onDraft(emptyDraft);
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
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      {error !== undefined && <ErrorNotice error={error} />}
      {isBusy(session) && (
        <fieldset className="row small">
          <legend className="visually-hidden">A turn is running. Process the message</legend>
          {(
            [
              ['queue', 'After this turn'],
              ['steer', 'Now (stop this turn)'],
            ] as const
          ).map(([value, label]) => (
            <label className="choice" key={value}>
              <input
                type="radio"
                name={name}
                checked={draft.onBusy === value}
                onChange={() => onDraft({ ...draft, onBusy: value })}
              />
              <span>{label}</span>
            </label>
          ))}
        </fieldset>
      )}
      <div className="line">
        <TextArea
          label="Message"
          quiet
          rows={1}
          placeholder="Write a message"
          enterKeyHint="send"
          maxLength={500_000}
          value={draft.text}
          readOnly={send.isPending}
          onChange={(event) => onDraft({ ...draft, text: event.currentTarget.value })}
          onKeyDown={onKeyDown}
        />
        <Button type="submit" look="primary" busy={send.isPending} disabled={draft.text.trim() === ''}>
          Send
        </Button>
      </div>
      <p className="hint quiet small">
        <kbd>Enter</kbd> to send, <kbd>Shift</kbd> <kbd>Enter</kbd> for a new line.
      </p>
    </form>
  );
}
