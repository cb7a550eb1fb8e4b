import type { ChunkType } from '@signalbox/client';
import { useState } from 'react';
import { useChange } from '../../organization.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { Checkbox, Choices, TextField } from '../../ui/field.tsx';
import { fieldError } from '../../ui/notice.tsx';
import { testReceiverUrl } from './reasons.ts';

/** A secret that is to be shown once. */
export interface NewSigningSecret {
  environment: string;
  secret: string | undefined;
  /** After a rotation: until when the one before signs too; null: it does no more. */
  previousExpiresAt?: string | null;
}

const chunkTypes: readonly { type: ChunkType; about: string }[] = [
  { type: 'message.chunk', about: 'what the Agent says, as it says it' },
  { type: 'session.status', about: 'running, waiting, completed …' },
  { type: 'tool.call', about: 'a tool is called, with its input' },
  { type: 'tool.result', about: 'what the tool gave back' },
  { type: 'approval.requested', about: 'a person must decide' },
  { type: 'approval.resolved', about: 'somebody did, or it expired' },
  { type: 'turn.completed', about: 'a turn is over, with its usage' },
];
const usual: readonly ChunkType[] = [
  'message.chunk',
  'session.status',
  'tool.call',
  'approval.requested',
  'approval.resolved',
];

export function ChunkTypes({
  value,
  onChange,
  error,
}: {
  value: readonly ChunkType[];
  onChange: (value: ChunkType[]) => void;
  error?: string | undefined;
}) {
  return (
    <fieldset>
      <legend>What is sent</legend>
      {chunkTypes.map(({ type, about }) => (
        <Checkbox
          key={type}
          label={
            <>
              <code>{type}</code> <span className="quiet small">{about}</span>
            </>
          }
          checked={value.includes(type)}
          onChange={(event) =>
            onChange(event.currentTarget.checked ? [...value, type] : value.filter((one) => one !== type))
          }
        />
      ))}
      {error && (
        <div className="field">
          <div className="error" role="alert">
            {error}
          </div>
        </div>
      )}
    </fieldset>
  );
}

type Where = 'own' | 'test';

/** Where deliveries go: an address of one's own, or the receiver that is built in. */
export function Destination({
  where,
  setWhere,
  url,
  setUrl,
  error,
}: {
  where: Where;
  setWhere: (where: Where) => void;
  url: string;
  setUrl: (url: string) => void;
  error: string | undefined;
}) {
  return (
    <>
      <Choices
        label="Where to"
        value={where}
        onChange={setWhere}
        options={[
          { value: 'own', label: 'My program', about: 'at an https address' },
          { value: 'test', label: 'The test receiver', about: 'built in; shows here what arrives, and verifies it' },
        ]}
      />
      {where === 'own' && (
        <TextField
          label="Address"
          type="url"
          mono
          placeholder="https://example.com/hooks/signalbox"
          hint="https, at a public address; others if the operator allows them"
          value={url}
          error={error}
          onChange={(event) => setUrl(event.currentTarget.value)}
        />
      )}
    </>
  );
}

/** What a form says and keeps of a destination. */
export function useDestination(present: string | undefined) {
  const isTest = present === testReceiverUrl;
  const [where, setWhere] = useState<Where>(isTest ? 'test' : 'own');
  const [url, setUrl] = useState(isTest ? '' : (present ?? ''));
  return { fields: { where, setWhere, url, setUrl }, url: where === 'test' ? testReceiverUrl : url.trim() };
}

export function CreateSubscription({
  environment,
  onClose,
  onMade,
}: {
  environment: string;
  onClose: () => void;
  onMade: (made: NewSigningSecret) => void;
}) {
  const destination = useDestination(undefined);
  const [types, setTypes] = useState<readonly ChunkType[]>(usual);
  const create = useChange(
    async (client, _: undefined) => {
      const { signingSecret } = await client.webhookSubscriptions.create({
        environment,
        url: destination.url,
        chunkTypes: [...types],
      });
      onMade({ environment, secret: signingSecret });
    },
    ['webhooks', 'overview'],
  );
  return (
    <FormDialog
      title={`Subscribe ${environment}`}
      action="Subscribe"
      beside={['url', 'chunkTypes']}
      onClose={onClose}
      submit={() => create.mutateAsync(undefined)}
    >
      <Destination {...destination.fields} error={fieldError(create.error, 'url')} />
      <details>
        <summary>What is sent: {types.length} kinds</summary>
        <ChunkTypes value={types} onChange={setTypes} error={fieldError(create.error, 'chunkTypes')} />
      </details>
      <p className="quiet small">It receives what Sessions show from now on. Its signing secret is shown next, once.</p>
    </FormDialog>
  );
}
