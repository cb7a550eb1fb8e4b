import { useOrganization } from '../../data/organization.tsx';
import { writeClipboard } from '../../ui/clipboard.ts';
import { useToast } from '../../ui/toast.tsx';

/** Copies the address of a session, or of one of its turns. */
export function useCopyLink(sessionId: string): (turn?: number) => Promise<void> {
  const { organizationId } = useOrganization();
  const toast = useToast();
  return async (turn) => {
    const address = `${location.origin}/console/${organizationId}/sessions/${sessionId}`;
    const copied = await writeClipboard(turn === undefined ? address : `${address}?turn=${turn}`);
    toast(copied ? 'Link copied' : 'Your browser blocked copying. Copy the address of the page instead.');
  };
}
