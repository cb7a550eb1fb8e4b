import type { Agent } from '@signalbox/client';
import { useApiMutation } from '../../organization.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { useToast } from '../../ui/toast.tsx';

export function ArchiveDialog({ agent, onClose }: { agent: Agent; onClose: () => void }) {
  const toast = useToast();
  const archive = useApiMutation((client, agentId: string) => client.agents.archive(agentId), ['agents']);
  return (
    <FormDialog
      title={`Archive ${agent.name}?`}
      action="Archive"
      danger
      submit={async () => {
        await archive.mutateAsync(agent.agentId);
        toast(`${agent.name} archived`);
      }}
      onClose={onClose}
    >
      <p>It will accept no new sessions or messages. A running turn still finishes.</p>
      <p>This can’t be undone. You can still read its versions and create a new agent from one.</p>
    </FormDialog>
  );
}
