// Chooses the version that a column starts from.
import { useState } from 'react';
import { agentOption, useAgents } from '../../data/agent-names.ts';
import { useApiQuery, useOrganization } from '../../data/organization.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { Select } from '../../ui/field.tsx';
import { columnOf, readVersion } from './entry.ts';
import type { Column } from './state.ts';

export function LoadDialog({ onLoad, onClose }: { onLoad: (column: Column) => void; onClose: () => void }) {
  const { client } = useOrganization();
  const { data: agents = [] } = useAgents();
  const [chosen, setChosen] = useState('');
  const [version, setVersion] = useState('');
  const agentId = chosen || agents[0]?.agentId;
  const { data: versions = [] } = useApiQuery(
    ['agents', agentId, 'versions', 'playground'],
    async (client) => (await client.agents.versions(agentId!, { limit: 100 })).data,
    { enabled: agentId !== undefined },
  );
  async function load() {
    if (!agentId) throw new Error('There is no agent yet. Create one first, or start with an example.');
    onLoad(columnOf(await readVersion(client, agentId, version === '' ? undefined : Number(version))));
  }
  return (
    <FormDialog title="Load an agent" action="Load" submit={load} onClose={onClose}>
      <Select
        label="Agent"
        value={agentId ?? ''}
        options={agents.length > 0 ? agents.map(agentOption) : [{ value: '', label: 'No agents' }]}
        onChange={({ currentTarget: { value } }) => {
          setChosen(value);
          setVersion('');
        }}
      />
      <Select
        label="Version"
        value={version}
        options={[
          { value: '', label: 'Newest version' },
          ...versions.map((one) => ({ value: String(one.version), label: `Version ${one.version}` })),
        ]}
        onChange={({ currentTarget: { value } }) => setVersion(value)}
      />
    </FormDialog>
  );
}
