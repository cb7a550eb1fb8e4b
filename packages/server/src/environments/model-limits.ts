// The limits of an environment for its models, as its API shows and sets them. models/limits/ applies them.
import {
  calledProviders,
  type ModelLimit,
  ownProvider,
  type ProviderName,
  type SetModelLimit,
} from '@signalbox/contract';
import { didYouMean, nearest } from '@signalbox/contract/nearest';
import sql, { type Sql } from 'sql-template-tag';
import type { Queryable, Tx } from '../db/db.ts';
import { invalidField } from '../lib/api-error.ts';
import type { Context } from '../lib/context.ts';

export type StoredLimit = Omit<ModelLimit, 'waiting' | 'waitingSince'>;

/** A column of `environments e`: its limits as a list of ModelLimit, by model. */
export const modelLimitsColumn = (organizationId: string): Sql => sql`
  coalesce((
    select json_agg(json_build_object('model', l.model, 'requestsPerMinute', l.requests_per_minute,
      'tokensPerMinute', l.tokens_per_minute, 'waiting', w.count, 'waitingSince', w.since) order by l.model collate "C")
    from model_limits l
    cross join lateral (
      select count(*)::int as count, min(x.since) as since from model_limit_waits x
      join operations o on o.organization_id = ${organizationId} and o.operation_id = x.operation_id
      where x.organization_id = ${organizationId} and x.environment = l.environment and x.model = l.model
        and not x.is_granted and o.status = 'pending') w
    where l.organization_id = ${organizationId} and l.environment = e.name and not l.is_removed), '[]'::json)`;

export function storedLimit({ model, requestsPerMinute, tokensPerMinute }: ModelLimit): StoredLimit {
  return { model, requestsPerMinute, tokensPerMinute };
}

export function limitFromRow({ waitingSince, ...limit }: ModelLimit): ModelLimit {
  return { ...limit, waitingSince: waitingSince && new Date(waitingSince).toISOString() };
}

/** What is stored of them, by model. 400 for a model that there can't be. */
export function checkedLimits(given: readonly SetModelLimit[]): StoredLimit[] {
  const limits = given.map(({ model, requestsPerMinute = null, tokensPerMinute = null }, index): StoredLimit => {
    const path = `modelLimits[${index}]`;
    if (requestsPerMinute === null && tokensPerMinute === null)
      throw invalidField(path, 'needs requestsPerMinute, tokensPerMinute, or both');
    if (given.findIndex((other) => other.model === model) < index)
      throw invalidField(`${path}.model`, `is a limit for ${JSON.stringify(model)}, which has another one in the list`);
    requireProvider(model, `${path}.model`);
    return { model, requestsPerMinute, tokensPerMinute };
  });
  return limits.toSorted((one, other) => (one.model < other.model ? -1 : 1));
}

function requireProvider(model: string, path: string): void {
  if (model === '*') return;
  const { provider, name } = partsOf(model);
  if (calledProviders.some((one) => one === provider) && name !== '') return;
  const near = nearest(provider, calledProviders);
  const meant = near && name !== '' ? ` Did you mean ${JSON.stringify(`${near}/${name}`)}?` : '';
  throw invalidField(
    path,
    `must be "*", or one of ${calledProviders.join(', ')} with a "/" and a model, as agents name it.${meant}`,
  );
}

/** 400 for a model that its provider does not have, as far as that is known. May send a request to the provider. */
export async function requireKnownModels(
  ctx: Context,
  environment: string,
  given: readonly SetModelLimit[],
): Promise<void> {
  for (const [index, { model }] of given.entries())
    await requireKnownModel(ctx, environment, model, `modelLimits[${index}].model`);
}

async function requireKnownModel(ctx: Context, environment: string, model: string, path: string): Promise<void> {
  const { provider, name } = partsOf(model);
  if (model === '*' || ownProvider(provider as ProviderName) === undefined) return;
  if (await isOfAgent(ctx.db, ctx.organizationId, { provider, name })) return;
  const config = { provider: provider as ProviderName, model: name };
  const { models, problem } = await ctx.modelCatalog.list({ organizationId: ctx.organizationId, environment, config });
  if (problem || models.length === 0) return;
  // A list has dated names, and a model may be named without the date.
  const plain = name.replace(/^models\//, '');
  if (models.some((one) => one.model === plain || one.model.startsWith(`${plain}-`))) return;
  const known = models.map((one) => `${provider}/${one.model}`);
  throw invalidField(path, `is not a model of ${provider} that the environment can call.${didYouMean(model, known)}`);
}

/** Whether an agent of the organization names the model. Its server may have models that no list has. */
async function isOfAgent(
  db: Queryable,
  organizationId: string,
  { provider, name }: { provider: string; name: string },
): Promise<boolean> {
  const found = await db.execute(sql`
    select 1 from agents a
    join agent_versions v on v.organization_id = a.organization_id and v.agent_id = a.agent_id and v.version = a.version
    where a.organization_id = ${organizationId} and exists (
      select from (
        select v.definition->'model' as named union all select v.definition->'model'->'compaction'
        union all select json_array_elements(v.definition->'model'->'fallbacks')) m
      where m.named->>'provider' = ${provider} and m.named->>'model' = ${name})
    limit 1`);
  return found > 0;
}

function partsOf(model: string): { provider: string; name: string } {
  const slash = model.indexOf('/');
  return slash === -1
    ? { provider: model, name: '' }
    : { provider: model.slice(0, slash), name: model.slice(slash + 1) };
}

/** The caller holds the lock of the environment's row, and publishes `limits` once the transaction is committed. */
export async function replaceLimits(
  tx: Tx,
  { organizationId, environment }: { organizationId: string; environment: string },
  limits: readonly StoredLimit[],
): Promise<void> {
  const models = limits.map(({ model }) => model);
  await tx.query(sql`
    insert into model_limits (organization_id, environment, model, requests_per_minute, tokens_per_minute, taken)
    select e.organization_id, e.name, c.model, c.requests, c.tokens, '[]'::json
    from environments e cross join unnest(${models}::text[], ${limits.map(({ requestsPerMinute }) => requestsPerMinute)}::integer[],
      ${limits.map(({ tokensPerMinute }) => tokensPerMinute)}::bigint[]) c(model, requests, tokens)
    where e.organization_id = ${organizationId} and e.name = ${environment}
    on conflict (organization_id, environment, model) do update set requests_per_minute = excluded.requests_per_minute,
      tokens_per_minute = excluded.tokens_per_minute, is_removed = false`);
  const others = sql`organization_id = ${organizationId} and environment = ${environment} and model <> all(${models}::text[])`;
  // Calls that wait are made at once, by the nodes. No call can begin to wait after the first of these.
  await tx.query(sql`update model_limits set is_removed = true where ${others}`);
  await tx.query(sql`
    delete from model_limits l
    where ${others} and not exists (
      select from model_limit_waits w
      where w.organization_id = l.organization_id and w.environment = l.environment and w.model = l.model)`);
}
