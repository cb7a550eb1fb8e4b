import { useState } from 'react';
import { useApiMutation } from '../../data/organization.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { Choices, DateTimeField, TextField } from '../../ui/field.tsx';
import { refusal } from '../../ui/form.ts';
import { instantOf } from '../../ui/local-time.ts';
import { fieldError } from '../../ui/notice.tsx';
import { useToast } from '../../ui/toast.tsx';

// Before the first chunk of a session.
const beginning = 'turn_0:seq_0';

function timeIn(local: string): string {
  const instant = instantOf(local);
  if (instant === undefined) throw refusal('since', 'Enter a date and a time.');
  return instant;
}

/** Resends from the journal: everything since a time, or one session after a cursor. */
export function RecoverDialog({
  environment,
  sessionId,
  cursor: heldCursor,
  onClose,
}: {
  environment: string;
  sessionId?: string;
  /** The last cursor that the receiver has of the session; null: none. */
  cursor?: string | null;
  onClose: () => void;
}) {
  const toast = useToast();
  const [what, setWhat] = useState<'since' | 'session'>(sessionId ? 'session' : 'since');
  const [since, setSince] = useState('');
  const [session, setSession] = useState(sessionId ?? '');
  const [cursor, setCursor] = useState(heldCursor === null ? beginning : (heldCursor ?? ''));
  const recover = useApiMutation(
    async (client, _: undefined) => {
      const place = { sessionId: session.trim(), cursor: cursor.trim() };
      await client.webhookSubscriptions.recover(environment, what === 'since' ? { since: timeIn(since) } : place);
    },
    ['webhooks'],
  );
  async function submit() {
    await recover.mutateAsync(undefined);
    toast('Resending, a few sessions at a time');
  }
  return (
    <FormDialog
      title="Resend from the journal"
      action="Resend"
      beside={['since', 'sessionId', 'cursor']}
      onClose={onClose}
      submit={submit}
    >
      <p>
        Sends everything again in order, as new deliveries, followed by anything new. Your program can use the cursor to
        skip what it already has.
      </p>
      <Choices
        label="Resend"
        value={what}
        onChange={setWhat}
        options={[
          { value: 'since', label: 'Everything since a time', about: 'if the receiver lost data' },
          { value: 'session', label: 'One session', about: 'after the last cursor that the receiver has' },
        ]}
      />
      {what === 'since' ? (
        <DateTimeField
          label="Since"
          value={since}
          error={fieldError(recover.error, 'since')}
          onChange={(event) => setSince(event.currentTarget.value)}
        />
      ) : (
        <>
          <TextField
            label="Session"
            mono
            placeholder="ses_…"
            value={session}
            error={fieldError(recover.error, 'sessionId')}
            onChange={(event) => setSession(event.currentTarget.value)}
          />
          <TextField
            label="Cursor"
            mono
            placeholder="turn_1:seq_12"
            hint={`The last cursor that the receiver has, or ${beginning} for the whole session`}
            value={cursor}
            error={fieldError(recover.error, 'cursor')}
            onChange={(event) => setCursor(event.currentTarget.value)}
          />
        </>
      )}
    </FormDialog>
  );
}
