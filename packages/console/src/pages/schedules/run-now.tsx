import { Play } from 'lucide-react';
import { useApiMutation, useOrganization } from '../../organization.tsx';
import { Button } from '../../ui/button.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { useToast } from '../../ui/toast.tsx';

/** Starts a session of the schedule, besides its times. */
export function RunNow({ scheduleId }: { scheduleId: string }) {
  const { may } = useOrganization();
  const toast = useToast();
  const run = useApiMutation((client, _: undefined) => client.schedules.run(scheduleId), ['schedules', 'sessions']);
  if (!may('write')) return null;
  return (
    <>
      {run.error && <ErrorNotice error={run.error} />}
      <Button
        busy={run.isPending}
        onClick={() =>
          run.mutate(undefined, { onSuccess: () => toast('Session started. It is the first of the runs.') })
        }
      >
        <Play aria-hidden="true" /> Run now
      </Button>
    </>
  );
}
