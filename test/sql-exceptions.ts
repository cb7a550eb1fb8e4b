// Statements that may break the rules of sql-rules.ts, and why. The lint reports an entry that nothing needs.
import type { Exception } from './sql-rules.ts';

// Statements across all organizations, which fail if a part of the database is unavailable. Everything else goes through
// `shards.query` and `shards.execute` (db/shards.ts).
export const exceptions: Exception[] = [
  {
    like: /^delete from nodes w where not exists \(select 1 from sessions s /,
    reason: 'the only node of an installation deletes earlier nodes, but no worker turns',
  },
  {
    like: /^select h\.organization_id as "organizationId" from event_heads h where h\.organization_id > \$1 order by h\.organization_id offset \$2 limit 1$/,
    reason: 'metrics count the sessions of the installation, a page of organizations at a time',
  },
  {
    like: /^select coalesce\(sum\(r\.count\), 0\)::bigint as running, .* from event_heads h join environments e /,
    reason: 'metrics count the open sessions of a page of organizations',
  },
  {
    like: /^select count\(\*\)::integer as count, min\(runnable_at\) as oldest from \( select runnable_at from sessions where node_id is null and runnable_at <= \$1 order by runnable_at limit \$2\) counted$/,
    reason: 'metrics report how long sessions wait for a node',
  },
  {
    like: /^select count\(\*\) filter \(where waiting_for->'error'->>'code' <> 'model_limit_reached'\)::integer as outage, .* from \( select waiting_for from sessions /,
    reason: 'metrics count the sessions that wait for their models, and for limits of them',
  },
  {
    like: /^select w\.status, sum\(d\.count\)::bigint as count from webhook_subscriptions w cross join lateral /,
    reason: 'metrics count sessions with undelivered chunks of a page of organizations',
  },
  {
    like: /^select count\(\*\)::integer as count, min\(occurred_at\) as oldest from \( select occurred_at from events_pending limit \$1\) counted$/,
    reason: 'metrics report how far behind the sequencer is',
  },
  {
    like: /^select m\.organization_id as "organizationId", o\.name, .* from members m join organizations o /,
    reason: 'a sign-in lists all organizations of the user',
  },
  {
    like: /^select organization_id as "organizationId", name from organizations order by organization_id( limit 1)?$/,
    reason: 'the start and the operator’s commands concern the whole installation',
  },
  {
    like: /^select organization_id as "organizationId", name, allowed_origins as "allowedOrigins", created_at as "createdAt" from organizations (where organization_id < \$1 )?order by organization_id desc limit \$\d$/,
    reason: 'the operator lists the organizations of the whole installation',
  },
  {
    like: /^select organization_id as "organizationId" from organizations$/,
    reason: 'db/placement.ts lists what a statement across organizations can be confined to',
  },
  {
    like: /^select 1 from (environment_secrets|webhook_subscriptions|destinations) where substring\(sealed_\w+ from /,
    reason: 'the start checks that its master keys decrypt all stored secrets',
  },
];

/** Templates that no test can reach. */
export const neverRun: Exception[] = [
  {
    like: /^select 1 from pg_dist_partition where logicalrelid = to_regclass\(/,
    reason: 'a migration runs it on its own client, whose statements are not recorded',
  },
  {
    like: /^, tail_node = null, tail_from = null$/,
    reason: 'a node stops to use the tail while text of a session waits there: only the simulation may come to it',
  },
];
