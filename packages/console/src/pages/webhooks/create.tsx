import type { ChunkType } from '@signalbox/client';
import { useState } from 'react';
import { preferredEnvironment } from '../../data/environment-names.ts';
import { useApiMutation } from '../../data/organization.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { Disclosure } from '../../ui/disclosure.tsx';
import { Checkbox, Choices, Select, TextField } from '../../ui/field.tsx';
import { fieldError } from '../../ui/notice.tsx';
import { testReceiverUrl } from './reasons.ts';

/** A secret to be shown once. */
export interface NewSigningSecret {
  environment: string;
  secret: string | undefined;
  /** After a rotation: until when the previous secret also signs; null: it no longer does. */
  previousExpiresAt?: string | null;
}

const chunkTypes: readonly { type: ChunkType; about: string }[] = [
  { type: 'message.chunk', about: 'the agent’s text as it is written' },
  { type: 'session.status', about: 'running, waiting, completed…' },
  { type: 'tool.call', about: 'a tool call and its input' },
  { type: 'tool.result', about: 'the result of a tool call' },
  { type: 'file.created', about: 'a tool returned a file' },
  { type: 'approval.requested', about: 'a tool call needs approval' },
  { type: 'approval.decided', about: 'one of several approvers has approved' },
  { type: 'approval.resolved', about: 'an approval was decided or expired' },
  { type: 'turn.completed', about: 'a turn ended, with its usage' },
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
      <legend>Chunk types</legend>
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

/** The destination of deliveries: a URL, or the built-in test receiver. */
export function DestinationFields({
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
        label="Destination"
        value={where}
        onChange={setWhere}
        options={[
          { value: 'own', label: 'My endpoint', about: 'an https URL' },
          { value: 'test', label: 'The test receiver', about: 'built in; verifies deliveries and shows them here' },
        ]}
      />
      {where === 'own' && (
        <TextField
          label="Endpoint URL"
          type="url"
          mono
          placeholder="https://example.com/hooks/signalbox"
          hint="Must use https and a public address, unless the operator allows others."
          value={url}
          error={error}
          onChange={(event) => setUrl(event.currentTarget.value)}
        />
      )}
    </>
  );
}

/** The state of a destination's form. */
export function useDestination(currentUrl: string | undefined) {
  const isTest = currentUrl === testReceiverUrl;
  const [where, setWhere] = useState<Where>(isTest ? 'test' : 'own');
  const [url, setUrl] = useState(isTest ? '' : (currentUrl ?? ''));
  return { fields: { where, setWhere, url, setUrl }, url: where === 'test' ? testReceiverUrl : url.trim() };
}

export function CreateSubscription({
  environments,
  onClose,
  onCreated,
}: {
  /** Environments without a webhook. */
  environments: readonly string[];
  onClose: () => void;
  onCreated: (created: NewSigningSecret) => void;
}) {
  const [environment, setEnvironment] = useState(() => preferredEnvironment(environments));
  const destination = useDestination(undefined);
  const [types, setTypes] = useState<readonly ChunkType[]>(usual);
  const create = useApiMutation(
    async (client, _: undefined) => {
      const { signingSecret } = await client.webhookSubscriptions.create({
        environment,
        url: destination.url,
        chunkTypes: [...types],
      });
      onCreated({ environment, secret: signingSecret });
    },
    ['webhooks', 'overview'],
  );
  return (
    <FormDialog
      title="Add webhook"
      action="Add webhook"
      beside={['environment', 'url', 'chunkTypes']}
      onClose={onClose}
      submit={() => create.mutateAsync(undefined)}
    >
      <Select
        label="Environment"
        hint="Its sessions are sent. Each environment can have one webhook."
        value={environment}
        error={fieldError(create.error, 'environment')}
        options={environments.map((value) => ({ value, label: value }))}
        onChange={(event) => setEnvironment(event.currentTarget.value)}
      />
      <DestinationFields {...destination.fields} error={fieldError(create.error, 'url')} />
      <Disclosure title="Chunk types" summary={String(types.length)}>
        <ChunkTypes value={types} onChange={setTypes} error={fieldError(create.error, 'chunkTypes')} />
      </Disclosure>
      <p className="quiet small">Sends chunks from now on. The signing secret is shown once, in the next step.</p>
    </FormDialog>
  );
}
