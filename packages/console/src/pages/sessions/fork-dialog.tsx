// Forks a session: to try a message again, perhaps with another text or version of the agent, or to continue after a turn.
import type { ForkSession, Session } from '@signalbox/client';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useApiMutation, useApiQuery, useOrganization } from '../../data/organization.tsx';
import { counted } from '../../lib/text-format.ts';
import { FormDialog } from '../../ui/dialog.tsx';
import { Choices, Select, TextArea } from '../../ui/field.tsx';
import { fieldError } from '../../ui/notice.tsx';
import type { UserEntry } from './conversation.ts';
import { isBusy } from './use-session.ts';

// One page of the list.
const MOST_VERSIONS = 100;

export function ForkDialog({
  session,
  entry,
  onClose,
}: {
  session: Session;
  /** The message that started the turn. */
  entry: UserEntry & { turn: number };
  onClose: () => void;
}) {
  const { organizationId } = useOrganization();
  const { sessionId, agentId } = session;
  const { turn } = entry;
  const navigate = useNavigate();
  const [where, setWhere] = useState<'before' | 'after'>('before');
  const [texts, setTexts] = useState({ before: entry.text, after: '' });
  const [version, setVersion] = useState('');
  const versions = useApiQuery(['agents', agentId, 'choice'], (client) =>
    client.agents.versions(agentId, { limit: MOST_VERSIONS }),
  ).data?.data;
  const fork = useApiMutation((client, body: ForkSession) => client.sessions.fork(sessionId, body), ['sessions']);
  // They belong to the message that is tried again.
  const files = where === 'before' ? entry.files.map(({ fileId }) => ({ type: 'file' as const, fileId })) : [];
  const isRunning = isBusy(session) && turn === session.turn;

  async function submit() {
    const text = texts[where].trim() === '' ? [] : [{ type: 'text' as const, text: texts[where] }];
    const input = [...text, ...files];
    const opened = await fork.mutateAsync({
      atTurn: where === 'before' ? turn - 1 : turn,
      ...(input.length > 0 && { input }),
      ...(version !== '' && { agentVersion: Number(version) }),
    });
    await navigate({
      to: '/$organizationId/sessions/$sessionId/compare',
      params: { organizationId, sessionId: opened.sessionId },
    });
  }

  return (
    <FormDialog
      title={`Fork at turn ${turn}`}
      action="Open fork"
      wide
      beside={['input', 'agentVersion']}
      submit={submit}
      onClose={onClose}
    >
      <p className="quiet">
        A fork is a new session with the conversation up to here. This session does not change. Tools that run in the
        fork have their effect again.
      </p>
      {!isRunning && (
        <Choices
          label="Where"
          value={where}
          onChange={setWhere}
          options={[
            { value: 'before', label: 'Before this message', about: 'Send it again, unchanged or edited.' },
            { value: 'after', label: `After turn ${turn}`, about: 'Continue with another message.' },
          ]}
        />
      )}
      <TextArea
        label="Next message"
        hint={
          files.length > 0
            ? `Sent with ${counted(files.length, 'file')} of this message.`
            : 'Leave empty to open the fork without starting a turn.'
        }
        rows={4}
        maxLength={500_000}
        value={texts[where]}
        error={fieldError(fork.error, 'input')}
        onChange={({ currentTarget: { value } }) => setTexts((before) => ({ ...before, [where]: value }))}
      />
      <Select
        label="Agent version"
        value={version}
        error={fieldError(fork.error, 'agentVersion')}
        onChange={({ currentTarget }) => setVersion(currentTarget.value)}
        options={[
          { value: '', label: 'Same as this session' },
          ...(versions ?? []).map((one, index) => ({
            value: String(one.version),
            label: `Version ${one.version}${index === 0 ? ' (newest)' : ''}`,
          })),
        ]}
      />
    </FormDialog>
  );
}
