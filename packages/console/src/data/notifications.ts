// Browser notifications of new approvals, while the console is open in a tab that is not looked at. Each person switches them on in their
// browser; nothing asks for the browser's permission before that.
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useRef, useSyncExternalStore } from 'react';
import { counted } from '../lib/text-format.ts';
import { useOrganization } from './organization.tsx';
import { useOverview } from './overview.tsx';

const STORED = 'signalbox.notifications';
// Approvals of one step arrive together: one notification.
const GATHER_MS = 1500;
// More that are new at the same time are not counted.
const MOST = 50;

const listeners = new Set<() => void>();
const isSupported = () => 'Notification' in window;
const areOn = () => isSupported() && Notification.permission === 'granted' && localStorage.getItem(STORED) === 'on';

/** `blocked`: the browser refuses them, and only its settings can change that. */
export type NotificationState = 'on' | 'off' | 'blocked' | 'unsupported';

function stateNow(): NotificationState {
  if (!isSupported()) return 'unsupported';
  if (Notification.permission === 'denied') return 'blocked';
  return areOn() ? 'on' : 'off';
}

export function useNotificationState(): NotificationState {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, stateNow);
}

/** After a click: asks the browser for its permission, if it has not been given. */
export async function switchNotifications(on: boolean): Promise<void> {
  if (on && (await Notification.requestPermission()) === 'granted') localStorage.setItem(STORED, 'on');
  else localStorage.removeItem(STORED);
  for (const listener of listeners) listener();
}

/** In the frame: notifies of approvals that the user may decide, in every environment: the page shows one, but all of them wait. */
export function useApprovalNotifications(): void {
  const { client, organizationId, mayDecide } = useOrganization();
  const navigate = useNavigate();
  const isOn = useNotificationState() === 'on' && mayDecide;
  const pending = useOverview(undefined, { enabled: isOn }).data?.pendingApprovals ?? 0;
  const before = useRef(pending);
  useEffect(() => {
    const isMore = pending > before.current;
    before.current = pending;
    if (!isMore || !isOn || document.hasFocus()) return;
    const timer = setTimeout(() => void notify().catch(() => {}), GATHER_MS);

    // The time of the newest that any tab of this browser has notified of: ids sort by time.
    const key = `signalbox.notified.${organizationId}`;
    async function notify(): Promise<void> {
      const last = localStorage.getItem(key) ?? '';
      const { data } = await client.approvals.list({ status: 'pending', order: 'desc', limit: MOST });
      const fresh = data.filter(({ operationId, refusal }) => operationId > last && refusal === null);
      const [newest] = fresh;
      if (!newest || (localStorage.getItem(key) ?? '') >= newest.operationId) return;
      localStorage.setItem(key, newest.operationId);
      const shown = new Notification(
        fresh.length === 1 ? `Approve ${newest.name}?` : `${counted(fresh.length, 'call')} waiting for approval`,
        { body: `In ${[...new Set(fresh.map(({ environment }) => environment))].join(', ')}`, tag: key },
      );
      shown.onclick = () => {
        window.focus();
        shown.close();
        const params = { organizationId, operationId: newest.operationId };
        if (fresh.length === 1) void navigate({ to: '/$organizationId/approvals/$operationId', params });
        else void navigate({ to: '/$organizationId/approvals', params });
      };
    }
    return () => clearTimeout(timer);
  }, [pending, isOn, client, organizationId, navigate]);
}
