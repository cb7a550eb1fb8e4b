// What may go against the rules of sql-rules.ts, and why. The lint complains of an entry that nothing needs.
import type { Exception } from './sql-rules.ts';

// Look-ups across organizations find candidates without a lock; what they find is then taken organization by organization.
export const exceptions: Exception[] = [
  {
    like: /^select organization_id as "organizationId", .* from sessions where worker_id is null and runnable_at is not null and queue is null/,
    reason: 'a worker looks for running Sessions to claim, of one organization after the other',
  },
  {
    like: /^select organization_id as "organizationId", .* from sessions where worker_id is null and runnable_at is not null and \(queue is not null/,
    reason: 'a worker looks for Sessions whose time has come',
  },
  {
    like: /^select organization_id as "organizationId", .* from sessions where worker_id = any\(/,
    reason: 'a worker looks for Sessions of those that died',
  },
  {
    like: /^with alive as materialized \(select .*\) select distinct s\.worker_id as "workerId" from sessions s /,
    reason: 'a worker looks for those that died holding Sessions',
  },
  {
    like: /^delete from workers w where not exists \(select 1 from sessions s /,
    reason: 'the only node of an installation forgets the nodes before it, and no program that holds a Session',
  },
  {
    like: /^select organization_id as "organizationId", session_id as "sessionId", epoch, .* from sessions where worker_id = \$1$/,
    reason: 'a worker looks at the Sessions that it holds',
  },
  {
    like: /^select organization_id as "organizationId", session_id as "sessionId" from sessions where parent_due limit 200$/,
    reason: 'a worker looks for children whose parents have not heard of their end',
  },
  {
    like: /^with alive as materialized \(.*\) select w\.organization_id as "organizationId", .* from webhook_subscriptions w where /,
    reason: 'a dispatcher looks for subscriptions to hold',
  },
  {
    like: /^\(select 1 from webhook_subscriptions w where w\.status = 'enabled' and w\.worker_id is null limit 1\)/,
    reason: 'a dispatcher looks whether there are subscriptions to claim',
  },
  {
    like: /^select organization_id as "organizationId", \w+ as "webhookSubscriptionId" from (sessions|webhook_deliveries|webhook_recoveries) where .* order by organization_id, \w+ limit \$3$/,
    reason: 'a dispatcher searches for subscriptions with something due',
  },
  {
    like: /^select distinct organization_id as "organizationId" from events_pending limit 1000$/,
    reason: 'the background pass looks for records that wait for the sequencer',
  },
  {
    like: /^select h\.organization_id as "organizationId" from event_heads h join events e /,
    reason: 'the background pass looks for records that are too old',
  },
  {
    like: /^delete from (retired_key_secrets|api_keys|access_denials|idempotency_records|invitations|password_resets) \w using \( select .* <= \$1 order by \w+_at limit 1000\) old where /,
    reason: 'what has expired is dropped, off the hot path',
  },
  {
    like: /^select distinct organization_id as "organizationId" from model_usage limit 1000$/,
    reason: 'the background pass looks for calls to compact',
  },
  {
    like: /^select organization_id as "organizationId", schedule_id as "scheduleId", next_at as "nextAt" from schedules where status = 'enabled' and next_at <= /,
    reason: 'the scheduler looks for what is due',
  },
  {
    like: /^select k\.status, c\.count from unnest\(\$1::text\[\]\) k\(status\) cross join lateral \( select count/,
    reason: 'metrics count the open Sessions of the installation',
  },
  {
    like: /^select count\(\*\)::integer as count, min\(runnable_at\) as oldest from \( select runnable_at from sessions where worker_id is null and runnable_at <= \$1 order by runnable_at limit \$2\) counted$/,
    reason: 'metrics say how long Sessions wait for a worker',
  },
  {
    like: /^select w\.status, sum\(d\.count\)::integer as count from webhook_subscriptions w cross join lateral /,
    reason: 'metrics count what webhooks have not delivered',
  },
  {
    like: /^select count\(\*\)::integer as count, min\(occurred_at\) as oldest from \( select occurred_at from events_pending limit \$1\) counted$/,
    reason: 'metrics say how far behind the sequencer is',
  },
  {
    like: /^select m\.organization_id as "organizationId", o\.name, m\.role from members m join organizations o /,
    reason: 'who signs in is asked for their organizations, whichever these are',
  },
  {
    like: /^select organization_id as "organizationId", name from organizations order by organization_id( limit 1)?$/,
    reason: 'the start, the background pass and the commands of the operator are about the installation',
  },
  {
    like: /^select 1 from (environment_secrets|webhook_subscriptions) where substring\(sealed_\w+ from /,
    reason: 'the start makes sure that its master keys open what the installation has sealed',
  },
];

/** Templates that no test can reach. */
export const neverRun: Exception[] = [
  {
    like: /^select 1 from pg_dist_partition where logicalrelid = to_regclass\(/,
    reason: 'a migration runs it by a client of its own, whose statements are not written down',
  },
];
