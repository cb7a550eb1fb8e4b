import { Play } from 'lucide-react';
import { useApiMutation, useOrganization } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { ErrorNotice, errorText } from '../../ui/notice.tsx';
import { useToast } from '../../ui/toast.tsx';

function useRun(scheduleId: string) {
  return useApiMutation((client, _: undefined) => client.schedules.run(scheduleId), ['schedules', 'sessions']);
}

/** Starts a session of the schedule, besides its times. */
export function RunNow({ scheduleId }: { scheduleId: string }) {
  const { may } = useOrganization();
  const toast = useToast();
  const run = useRun(scheduleId);
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

/** The button in a row. */
export function RunRowNow({ scheduleId, name }: { scheduleId: string; name: string }) {
  const { may } = useOrganization();
  const toast = useToast();
  const run = useRun(scheduleId);
  if (!may('write')) return null;
  return (
    <Button
      look="bare"
      small
      className="icon not-on-phone"
      aria-label={`Run ${name} now`}
      title="Run now"
      disabled={run.isPending}
      onClick={() =>
        run.mutate(undefined, {
          onSuccess: () => toast(`Session of ${name} started`),
          onError: (error) => toast(errorText(error)),
        })
      }
    >
      <Play aria-hidden="true" />
    </Button>
  );
}
