// What a session runs: the definition of a version of its agent, or of a draft, which has a number below zero (drafts.ts). Neither ever
// changes, so both can be cached without a limit of time.
import { agentDefaults, type Model, type Tool, type WebSearchTool, webSearchName } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Db, Queryable } from '../db/db.ts';
import { isDraft } from '../lib/draft-version.ts';
import type { Definition } from './agents.ts';

// They never change, so the limit only bounds memory.
const MAX_KEPT_VERSIONS = 1_000;

/** Reads definitions by version, and caches them. */
export function createDefinitionCache(db: Db) {
  const kept = new Map<string, Definition>();
  return async (organizationId: string, agentId: string, version: number): Promise<Definition> => {
    const key = `${organizationId} ${agentId} ${version}`;
    const known = kept.get(key);
    if (known) return known;
    const definition = await readDefinition(db, organizationId, agentId, version);
    if (kept.size >= MAX_KEPT_VERSIONS) kept.delete(kept.keys().next().value!);
    kept.set(key, definition);
    return definition;
  };
}

/** The definition of a version, or of a draft, that is known to exist. */
export async function readDefinition(
  db: Queryable,
  organizationId: string,
  agentId: string,
  version: number,
): Promise<Definition> {
  const [row] = await db.query<{ definition: Definition; mocks?: Definition['mocks'] }>(
    isDraft(version)
      ? sql`
        select definition, mocks from agent_drafts
        where organization_id = ${organizationId} and agent_id = ${agentId} and version = ${version}`
      : sql`
        select definition from agent_versions
        where organization_id = ${organizationId} and agent_id = ${agentId} and version = ${version}`,
  );
  if (!row) throw new Error('A session names an agent version that is not there');
  return { ...complete(row.definition), ...(row.mocks && { mocks: row.mocks }) };
}

/** The agent's model and its fallbacks, in the order in which they are called. */
export function modelsOf({ model: { fallbacks = [], compaction: _, ...own } }: Pick<Definition, 'model'>): Model[] {
  return [own, ...fallbacks];
}

/**
 * A definition as it is stored. Nodes of releases before `web_search` fail on a type of tool that they don't know, so it is apart from
 * the tools: they run the agent without it. `at`: its place among the tools.
 */
type Stored = Omit<Definition, 'showReasoning' | 'showToolInput'> & {
  webSearch?: Omit<WebSearchTool, 'type'> & { at: number };
};

export function storedForm(definition: Definition): Definition & Stored {
  const at = definition.tools.findIndex(({ type }) => type === 'web_search');
  const search = definition.tools[at];
  if (search?.type !== 'web_search') return definition;
  const { type: _, ...fields } = search;
  return { ...definition, tools: definition.tools.toSpliced(at, 1), webSearch: { ...fields, at } };
}

/** With the defaults of fields that the release which stored it did not have. */
export function complete({ webSearch, ...stored }: Stored): Definition {
  const { limits, showReasoning, showToolInput } = agentDefaults;
  const { at = 0, ...fields } = webSearch ?? {};
  const tools: Tool[] = webSearch ? stored.tools.toSpliced(at, 0, { type: 'web_search', ...fields }) : stored.tools;
  return { showReasoning, showToolInput, ...stored, tools, limits: { ...limits, ...stored.limits } };
}

/** The `web_search` of a definition. Undefined: it has none, or the session has left it out. */
export function webSearchOf(
  { tools }: Pick<Definition, 'tools'>,
  leftOut: readonly string[],
): Omit<WebSearchTool, 'type'> | undefined {
  const tool = tools.find(({ type }) => type === 'web_search');
  if (tool?.type !== 'web_search' || leftOut.includes(webSearchName)) return undefined;
  const { type: _, ...search } = tool;
  return search;
}
