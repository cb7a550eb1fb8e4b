// `signalbox overview`: what is happening now.
import { command } from '../command.ts';
import { printRecord, printResult } from '../print.ts';
import { serviceOf, serviceOptions } from '../service.ts';

const overview = command({
  name: '',
  summary: 'Show how many sessions run and wait, how many approvals are pending, and what fails',
  options: {
    environment: { type: 'string', value: 'NAME', about: 'only this environment' },
    ...serviceOptions,
  },
  examples: [['overview', 'whether anything needs attention']],
  needs: ['usage:read'],
  operations: ['getOverview'],
  async run(input) {
    const { environment } = input.values;
    const found = await serviceOf(input).overview({ environment });
    await printResult(input, found, () => {
      const { sessions, webhooks, schedules } = found;
      return printRecord(input.terminal, [
        ['Sessions now', `${sessions.running} running, ${sessions.waiting} waiting, ${sessions.idle} idle`],
        [
          'Last 24 hours',
          `${sessions.completed} completed, ${sessions.failed} failed, ${sessions.cancelled} cancelled`,
        ],
        ['Pending approvals', String(found.pendingApprovals)],
        [
          'Webhooks',
          `${webhooks.blocked} blocked, ${webhooks.failing} failing, ${webhooks.degraded} degraded, ${webhooks.disabled} disabled`,
        ],
        ['Deliveries', `${webhooks.waitingDeliveries} wait for a retry`],
        // A service of the release before does not count them.
        ['Schedules', schedules ? `${schedules.failing} failing` : ''],
        ['Keys', `${found.keysExpiringSoon} expire within 14 days`],
      ]);
    });
  },
});

export const commands = [overview];
