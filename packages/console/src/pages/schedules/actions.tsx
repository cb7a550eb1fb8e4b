// The actions on a schedule: edit, pause, enable, delete.
import type { Schedule } from '@signalbox/client';
import { useState } from 'react';
import { inList, useApiMutation, useOrganization } from '../../data/organization.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { Menu } from '../../ui/menu.tsx';
import { errorText } from '../../ui/notice.tsx';
import { formatExact } from '../../ui/time.tsx';
import { useToast } from '../../ui/toast.tsx';
import { ScheduleForm } from './schedule-form.tsx';

/** The menu; empty if the role allows nothing. `onDeleted` leaves the page. */
export function ScheduleMenu({
  schedule,
  label,
  onDeleted,
}: {
  schedule: Schedule;
  label: string;
  onDeleted?: () => void;
}) {
  const { may } = useOrganization();
  const toast = useToast();
  const [dialog, setDialog] = useState<'edit' | 'delete'>();
  const { scheduleId } = schedule;
  const change = useApiMutation(
    (client, status: Schedule['status']) => client.schedules.update(scheduleId, { status }),
    ['schedules'],
    { key: ['schedules'], apply: withStatus(scheduleId) },
  );
  if (!may('write')) return null;
  const close = () => setDialog(undefined);
  function setStatus(status: Schedule['status']) {
    change.mutate(status, {
      onSuccess: ({ nextAt }) =>
        toast(
          status === 'paused'
            ? 'Schedule paused'
            : `Schedule enabled${nextAt ? `. Next run: ${formatExact(nextAt)}` : ''}`,
        ),
      onError: (error) => toast(errorText(error)),
    });
  }
  return (
    <>
      <Menu
        label={label}
        items={[
          { label: 'Edit', onSelect: () => setDialog('edit') },
          schedule.status === 'enabled'
            ? { label: 'Pause', onSelect: () => setStatus('paused') }
            : { label: 'Enable', onSelect: () => setStatus('enabled') },
          { label: 'Delete', danger: true, onSelect: () => setDialog('delete') },
        ]}
      />
      {dialog === 'edit' && <ScheduleForm schedule={schedule} onClose={close} />}
      {dialog === 'delete' && <Delete scheduleId={scheduleId} onClose={close} {...(onDeleted && { onDeleted })} />}
    </>
  );
}

/** The new status in the list, and on the schedule's page. */
function withStatus(scheduleId: string) {
  const changed = (one: Schedule, status: Schedule['status']): Schedule =>
    one.scheduleId === scheduleId ? { ...one, status } : one;
  const listed = inList(changed);
  return (data: unknown, status: Schedule['status']): unknown =>
    typeof data === 'object' && data !== null && 'scheduleId' in data
      ? changed(data as Schedule, status)
      : listed(data, status);
}

function Delete({
  scheduleId,
  onClose,
  onDeleted,
}: {
  scheduleId: string;
  onClose: () => void;
  onDeleted?: () => void;
}) {
  const remove = useApiMutation(
    async (client, _: undefined) => {
      await client.schedules.delete(scheduleId);
      onDeleted?.();
    },
    ['schedules'],
  );
  return (
    <FormDialog
      title="Delete this schedule?"
      action="Delete schedule"
      done="Schedule deleted"
      danger
      onClose={onClose}
      submit={() => remove.mutateAsync(undefined)}
    >
      <p>
        It starts no more sessions, and its run history is deleted. Sessions that it started are kept. To stop it
        temporarily, pause it instead.
      </p>
    </FormDialog>
  );
}
