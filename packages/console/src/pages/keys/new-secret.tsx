import type { ApiKeyWithSecret } from '@signalbox/client';
import { useState } from 'react';
import { Code } from '../../ui/copy.tsx';
import { OneTimeSecret } from '../../ui/one-time-secret.tsx';
import { Tabs } from '../../ui/tabs.tsx';

/** The secret of a key that was just created or rotated, and the first call with it. */
export function NewSecret({ apiKey, onClose }: { apiKey: ApiKeyWithSecret; onClose: () => void }) {
  return (
    <OneTimeSecret title={`Secret of ${apiKey.name}`} secret={apiKey.secret} onClose={onClose}>
      {apiKey.secret && <FirstCall secret={apiKey.secret} />}
    </OneTimeSecret>
  );
}

/** A command and a program to copy, with the key in them. */
export function FirstCall({ secret }: { secret: string }) {
  const [tab, setTab] = useState<'curl' | 'client'>('curl');
  const { origin } = location;
  const curl = `curl ${origin}/api/v1/me -H 'Authorization: Bearer ${secret}'`;
  const program = `import { Signalbox } from '@signalbox/client';

// In production, set SIGNALBOX_API_KEY and SIGNALBOX_URL, and call new Signalbox().
const client = new Signalbox({ apiKey: '${secret}', baseUrl: '${origin}' });
console.log(await client.me());`;
  return (
    <Tabs
      label="Try it"
      value={tab}
      onChange={setTab}
      tabs={[
        { value: 'curl', label: 'curl', content: <Code text={curl} /> },
        { value: 'client', label: 'TypeScript', content: <Code text={program} /> },
      ]}
    />
  );
}
