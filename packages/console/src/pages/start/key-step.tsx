import type { ApiKeyWithSecret } from '@signalbox/client';
import { useState } from 'react';
import { useApiMutation } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { Code } from '../../ui/copy.tsx';
import { ErrorNotice, Notice } from '../../ui/notice.tsx';
import { FirstCall } from '../keys/new-secret.tsx';
import { Step, type StepState } from './step.tsx';

export function KeyStep({ state }: { state: StepState }) {
  const [created, setCreated] = useState<ApiKeyWithSecret>();
  const create = useApiMutation(
    (client, _: undefined) => client.keys.create({ name: 'First key', permission: 'write' }),
    ['keys'],
  );
  return (
    <Step number={4} title="Call the API from your program" state={state}>
      <p>Your programs use an API key. The console uses your sign-in instead.</p>
      {created?.secret ? (
        <>
          <Notice kind="warn" live title="Copy the secret now. It won’t be shown again." />
          <Code text={created.secret} label="Copy secret" />
          <FirstCall secret={created.secret} />
        </>
      ) : (
        <div className="row">
          <Button
            look={state === 'current' ? 'primary' : undefined}
            busy={create.isPending}
            onClick={() => create.mutate(undefined, { onSuccess: setCreated })}
          >
            {state === 'done' ? 'Create another key' : 'Create key'}
          </Button>
        </div>
      )}
      {create.error && <ErrorNotice error={create.error} />}
    </Step>
  );
}
