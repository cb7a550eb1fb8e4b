/** Counts of what is happening now in the organization. */
import { EnvironmentName, type Static, Strict, Type } from './schema.ts';

/** Counting stops here, so that a large number costs no more to read than this. */
export const maxCount = 10_000;

const Count = (description?: string) =>
  Type.Integer({ maximum: maxCount, ...(description !== undefined && { description }) });

export const Overview = Type.Object(
  {
    sessions: Type.Object({
      idle: Count(),
      running: Count(),
      waiting: Count(),
      completed: Count('In the last 24 hours.'),
      failed: Count('In the last 24 hours.'),
      cancelled: Count('In the last 24 hours.'),
    }),
    pendingApprovals: Count(),
    webhooks: Type.Object({
      blocked: Count(
        'Enabled subscriptions for which nothing can be sent (`health.blockedBy`), among the 1,000 newest. A subscription that also fails is counted in both.',
      ),
      failing: Count('Enabled subscriptions whose destination has been failing for less than a day.'),
      degraded: Count('Enabled subscriptions whose destination has been failing for longer.'),
      disabled: Count('Subscriptions that the service has disabled.'),
      waitingDeliveries: Count('Deliveries that wait for a retry.'),
    }),
    schedules: Type.Object({
      failing: Count('Schedules among the 1,000 newest that will run again and whose last runs failed (`failedRuns`).'),
    }),
    keysExpiringSoon: Count('API keys that expire within 14 days.'),
  },
  {
    title: 'Overview',
    description: `The current state. Counting stops at ${maxCount}, which means that many or more.`,
  },
);
export type Overview = Static<typeof Overview>;

export const GetOverview = Strict({ environment: Type.Optional(EnvironmentName) });
