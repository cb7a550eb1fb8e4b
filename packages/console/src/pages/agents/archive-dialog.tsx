import type { Agent } from '@signalbox/client';
import { useApiMutation } from '../../data/organization.tsx';
import { FormDialog } from '../../ui/dialog.tsx';

export function ArchiveDialog({ agent, onClose }: { agent: Agent; onClose: () => void }) {
  const archive = useApiMutation((client, agentId: string) => client.agents.archive(agentId), ['agents']);
  return (
    <FormDialog
      title={`Archive ${agent.name}?`}
      action="Archive"
      danger
      done={`${agent.name} archived`}
      submit={() => archive.mutateAsync(agent.agentId)}
      onClose={onClose}
    >
      <p>It will accept no new sessions or messages. A running turn still finishes.</p>
      <p>This can’t be undone. You can still read its versions and create a new agent from one.</p>
    </FormDialog>
  );
}
