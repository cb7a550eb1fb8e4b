import type { ChunkType, WebhookSubscription } from '@signalbox/client';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useApiMutation, useOrganization } from '../../data/organization.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { fieldError } from '../../ui/notice.tsx';
import { ChunkTypes, DestinationFields, useDestination } from './create.tsx';

export function EditDialog({
  subscription: { environment, ...before },
  onClose,
}: {
  subscription: WebhookSubscription;
  onClose: () => void;
}) {
  const destination = useDestination(before.url);
  const [types, setTypes] = useState<readonly ChunkType[]>(before.chunkTypes);
  const { url } = destination;
  const change = useApiMutation(
    (client, _: undefined) =>
      client.webhookSubscriptions.update(environment, {
        ...(url !== before.url && { url }),
        chunkTypes: [...types],
      }),
    ['webhooks', 'overview'],
  );
  return (
    <FormDialog
      title={`Edit the webhook of ${environment}`}
      action="Save"
      beside={['url', 'chunkTypes']}
      onClose={onClose}
      submit={() => change.mutateAsync(undefined)}
    >
      <DestinationFields {...destination.fields} error={fieldError(change.error, 'url')} />
      <ChunkTypes value={types} onChange={setTypes} error={fieldError(change.error, 'chunkTypes')} />
      <p className="quiet small">
        Applies from the next delivery, including retries. The signing secret stays the same. A new URL is tried
        immediately.
      </p>
    </FormDialog>
  );
}

export function DeleteDialog({
  subscription: { environment },
  onClose,
}: {
  subscription: WebhookSubscription;
  onClose: () => void;
}) {
  const { organizationId } = useOrganization();
  const navigate = useNavigate();
  const remove = useApiMutation(
    async (client, _: undefined) => {
      await client.webhookSubscriptions.delete(environment);
      await navigate({ to: '/$organizationId/webhooks', params: { organizationId } });
    },
    ['webhooks', 'overview'],
  );
  return (
    <FormDialog
      title={`Delete the webhook of ${environment}?`}
      action="Delete webhook"
      done="Webhook deleted"
      danger
      onClose={onClose}
      submit={() => remove.mutateAsync(undefined)}
    >
      <p>
        Pending deliveries are never sent, and the delivery history and signing secret are deleted. To stop deliveries
        temporarily, pause the webhook instead.
      </p>
    </FormDialog>
  );
}
