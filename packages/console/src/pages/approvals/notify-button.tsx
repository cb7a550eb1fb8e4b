import { Bell, BellOff, BellRing } from 'lucide-react';
import { switchNotifications, useNotificationState } from '../../data/notifications.ts';
import { useOrganization } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { useToast } from '../../ui/toast.tsx';
import { Tooltip } from '../../ui/tooltip.tsx';

/** Switches notifications of this browser on and off. Only users who can decide are offered them. */
export function NotifyButton() {
  const { mayDecide } = useOrganization();
  const state = useNotificationState();
  const toast = useToast();
  if (!mayDecide || state === 'unsupported') return null;
  if (state === 'blocked') {
    return (
      <Tooltip text="Your browser blocks notifications: allow them in its settings for this site" side="bottom">
        <button type="button" className="button bare icon" aria-label="Notifications are blocked" aria-disabled="true">
          <BellOff aria-hidden="true" />
        </button>
      </Tooltip>
    );
  }
  const on = state === 'on';
  const press = async () => {
    await switchNotifications(!on);
    if (!on && Notification.permission === 'granted')
      toast('This browser notifies you of new approvals while the console is open');
  };
  return (
    <Button className="notify" aria-pressed={on} onClick={() => void press()}>
      {on ? <BellRing aria-hidden="true" /> : <Bell aria-hidden="true" />}
      <span>{on ? 'Notifications on' : 'Notify me'}</span>
    </Button>
  );
}
