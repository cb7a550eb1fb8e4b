// Finds agents by words and by model. An organization has hundreds of agents rather than millions, so they are read newest first, with
// the few fields that are searched, up to a bound for each page; the next page continues after the last one that was checked.
import { type Input, type Model, webSearchName } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import type { Queryable } from '../db/db.ts';
import { formatId } from '../lib/ids.ts';
import { normalizable } from '../lib/text.ts';
import { modelName } from '../usage/prices.ts';

// Takes some tens of milliseconds.
const CHECKED = 2_000;

interface Candidate {
  agentId: string;
  name: string;
  description: string;
  model: Model;
  tools: string[];
}

export interface FoundAgents {
  agentIds: string[];
  /** The last agent that was checked, if there may be more after it. */
  checkedUntil?: string | undefined;
}

/** At most `limit` agents. `which`: `and …` on `a`, a row of agents. */
export async function findAgents(
  db: Queryable,
  organizationId: string,
  { q = '', model }: Pick<Input<'listAgents'>, 'q' | 'model'>,
  which: Sql,
  limit: number,
  checked: number = CHECKED,
): Promise<FoundAgents> {
  const candidates = await db.query<Candidate>(sql`
    select a.agent_id as "agentId", d.name, d.description, d.model, array(
      select t->>'name' from json_array_elements(d.tools) t
      union all select ${webSearchName} where d."webSearch" is not null) as tools
    from agents a
    join agent_versions v
      on v.organization_id = a.organization_id and v.agent_id = a.agent_id and v.version = a.version
    cross join lateral json_to_record(v.definition) d(name text, description text, model json, tools json,
      "webSearch" json)
    where a.organization_id = ${organizationId} ${which}
    order by a.agent_id desc limit ${checked}`);
  const words = plain(q).split(/\s+/);
  const found = candidates.filter((candidate) => {
    if (model !== undefined && modelName(candidate.model) !== model) return false;
    const text = plain(textOf(candidate));
    return words.every((word) => text.includes(word));
  });
  return {
    agentIds: found.slice(0, limit).map(({ agentId }) => agentId),
    checkedUntil: candidates.length === checked ? candidates.at(-1)!.agentId : undefined,
  };
}

function textOf({ agentId, name, description, model, tools }: Candidate): string {
  return [name, description, modelName(model), formatId('agt', agentId), ...tools].join('\n');
}

/** Without case and accents. */
function plain(text: string): string {
  return normalizable(text).normalize('NFKD').replaceAll(/\p{M}/gu, '').toLowerCase().trim();
}
