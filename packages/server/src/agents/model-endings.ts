// Announced ends of models. An event is recorded 60, 14 and 1 days before a model ends that an agent uses, once for each organization, model
// and threshold, whatever nodes look and however often they restart.
import sql, { join, type Sql } from 'sql-template-tag';
import type { Db, Tx } from '../db/db.ts';
import { areThere } from '../db/rounds.ts';
import type { Within } from '../db/shards.ts';
import { recordEvent, systemSource } from '../events/record.ts';
import { formatId } from '../lib/ids.ts';
import { announcedEnd, knownModels } from '../usage/known-models.ts';
import { modelName } from '../usage/prices.ts';
import type { Definition } from './agents.ts';
import { modelsOf } from './read-definition.ts';

const THRESHOLDS = [1, 14, 60];
const DAY_MS = 24 * 3600 * 1000;
// The agents that one event names; it has the number of all.
const NAMED_AGENTS = 20;
const PAGE = 500;
const FEW_AGENTS = 20;

/**
 * Whether agents of an organization may use a model that ends soon, for rounds through all of them. It reads the definitions of few
 * agents; an organization with more is looked at by itself.
 */
export function hasEndings(organizationId: Sql, now: Date, within: Within): Sql {
  const names = namesThatEnd(now);
  if (names.length === 0) return sql`false`;
  const few = sql`
    select (v.definition->'model')::text as model, a.archived_at from agents a
    join agent_versions v
      on v.organization_id = a.organization_id and v.agent_id = a.agent_id and v.version = a.version
    where a.organization_id = ${organizationId} ${within(sql`a.organization_id`)}
    order by a.agent_id limit ${FEW_AGENTS}`;
  const hasMore = areThere(sql`
    from agents a where a.organization_id = ${organizationId} ${within(sql`a.organization_id`)}
    order by a.agent_id offset ${FEW_AGENTS}`);
  return sql`${areThere(sql`from (${few}) f where f.archived_at is null and ${hasName(names, sql`f.model`)}`)} or ${hasMore}`;
}

/** Returns how many events were recorded. */
export async function recordEndings(db: Db, organizationId: string, now: Date): Promise<number> {
  let recorded = 0;
  for (const ending of await endingsOf(db, organizationId, now)) {
    if (await db.transaction((tx) => record(tx, organizationId, ending, now))) recorded += 1;
  }
  return recorded;
}

/** As `recordEndings`, for an agent that is saved, in its transaction: the next look may be an hour away. */
export async function recordEndingsOf(tx: Tx, organizationId: string, agent: ModelUser, now: Date): Promise<void> {
  const endings = new Map<string, Ending>();
  addEndings(endings, agent, now);
  for (const ending of endings.values()) await record(tx, organizationId, ending, now);
}

interface ModelUser {
  agentId: string;
  model: Definition['model'];
}

interface Ending {
  model: string;
  /** A day, such as `2026-12-11`. */
  endsAt: string;
  replacement: string | null;
  threshold: number;
  agentIds: string[];
}

async function endingsOf(db: Db, organizationId: string, now: Date): Promise<Ending[]> {
  const names = namesThatEnd(now);
  const endings = new Map<string, Ending>();
  let after: string | null = null;
  for (let page: ModelUser[] = []; names.length > 0; ) {
    page = await db.query(sql`
      select a.agent_id as "agentId", v.definition->'model' as model from agents a
      join agent_versions v
        on v.organization_id = a.organization_id and v.agent_id = a.agent_id and v.version = a.version
      where a.organization_id = ${organizationId} and a.archived_at is null
        and ${hasName(names, sql`(v.definition->'model')::text`)}
        and (${after}::uuid is null or a.agent_id > ${after}::uuid)
      order by a.agent_id limit ${PAGE}`);
    for (const agent of page) addEndings(endings, agent, now);
    after = page.at(-1)?.agentId ?? null;
    if (page.length < PAGE) break;
  }
  return [...endings.values()];
}

function addEndings(endings: Map<string, Ending>, { agentId, model }: ModelUser, now: Date): void {
  const models = [...modelsOf({ model }), ...(model.compaction ? [model.compaction] : [])];
  for (const one of new Map(models.map((each) => [modelName(each), each])).values()) {
    const { endsAt, replacement } = announcedEnd(one);
    const threshold = endsAt === null ? undefined : thresholdOf(endsAt, now);
    if (endsAt === null || threshold === undefined) continue;
    const name = modelName(one);
    const found = endings.get(name) ?? { model: name, endsAt, replacement, threshold, agentIds: [] };
    found.agentIds.push(formatId('agt', agentId));
    endings.set(name, found);
  }
}

/** The nearest threshold that was reached: earlier ones say nothing that it does not. Undefined if there is none yet, or it has ended. */
function thresholdOf(endsAt: string, now: Date): number | undefined {
  const days = Math.ceil((Date.parse(endsAt) - now.getTime()) / DAY_MS);
  return days < 0 ? undefined : THRESHOLDS.find((threshold) => days <= threshold);
}

/** Without their providers. */
function namesThatEnd(now: Date): string[] {
  const ending = Object.entries(knownModels().models).filter(
    ([, { endsAt }]) => endsAt !== null && thresholdOf(endsAt, now) !== undefined,
  );
  return [...new Set(ending.map(([name]) => name.slice(name.indexOf('/') + 1)))];
}

/** Includes others, such as names that begin with one of these; what is read is compared exactly. */
function hasName(names: readonly string[], model: Sql): Sql {
  return sql`(${join(
    names.map((name) => sql`strpos(${model}, ${name}) > 0`),
    ' or ',
  )})`;
}

async function record(tx: Tx, organizationId: string, ending: Ending, now: Date): Promise<boolean> {
  const { model, endsAt, replacement, threshold, agentIds } = ending;
  const isFirst = await tx.execute(sql`
    insert into model_endings (organization_id, model, ends_at, threshold_days, recorded_at)
    values (${organizationId}, ${model}, ${endsAt}::date, ${threshold}, ${now})
    on conflict (organization_id, model, ends_at, threshold_days) do nothing`);
  if (isFirst === 0) return false;
  await tx.query(
    recordEvent(systemSource(organizationId), now, {
      type: 'model.ending',
      resource: { type: 'model', id: model },
      changes: {
        endsAt: [null, endsAt],
        ...(replacement !== null && { replacement: [null, replacement] }),
        agents: [null, agentIds.slice(0, NAMED_AGENTS)],
        agentCount: [null, agentIds.length],
      },
    }),
  );
  return true;
}
