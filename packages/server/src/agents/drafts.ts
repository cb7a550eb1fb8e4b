// Drafts: definitions that sessions run without being saved, to try them. A draft may have mocks: calls of these tools are not run.
//
// A draft is stored once, in a table of its own, with a number below zero in place of a version. What a session runs is therefore still
// an agent and a number: forks, retries, child sessions and nodes that take a session over need to know nothing else. The number is a
// part of the SHA-256, so the same draft has the same number again, also after it was deleted.
//
// A session belongs to an agent. Drafts without one belong to the agent with the id of the organization, which has version 0 and
// therefore no definition: it is not listed, and no session can be opened with it otherwise.
import { createHash } from 'node:crypto';
import { type Draft, type FieldError, type Input, type Result, toolNameOf, unusableScopes } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import type { Queryable } from '../db/db.ts';
import { deleteInBatches } from '../db/delete-in-batches.ts';
import { areThere } from '../db/rounds.ts';
import type { Within } from '../db/shards.ts';
import { ApiError, notFound } from '../lib/api-error.ts';
import type { Context } from '../lib/context.ts';
import { isDraft } from '../lib/draft-version.ts';
import { uuidOf } from '../lib/ids.ts';
import { readSession } from '../session-rows/session.ts';
import { checkSchemas, currentVersion, type Definition, definitionOf, requireReach, requireValid } from './agents.ts';
import { readDefinition, storedForm } from './read-definition.ts';

/** How long a draft is kept that no session runs: longer than any transaction that opens one. */
const UNUSED_MS = 3600_000;
/** A draft that is opened again and again is not written each time. */
const REFRESH_MS = UNUSED_MS / 2;
/** Two drafts of an agent with the same number are as likely as a wrong guess of 31 bits; then the next part of the SHA-256 is the number. */
const NUMBERS = 8;

/** The draft of a session that is about to be opened. */
export interface StoredDraft {
  agentId: string;
  version: number;
  /** For the event log. */
  sha256: string;
}

/** Before the transaction. 403 if the caller may not change agents; 400 if the definition or a mock is invalid. */
export async function checkDraft(ctx: Context, { draft }: { draft?: Draft | undefined }): Promise<void> {
  if (!draft) return;
  requireScope(ctx);
  const { definition, mocks = {} } = draft;
  const errors: FieldError[] = Object.entries(mocks).flatMap(([name, { results }]) => [
    ...(isToolOf(definition, name)
      ? isRanByProvider(definition, name)
        ? [{ path: `draft.mocks.${name}`, message: 'must not be given: the model’s provider runs it' }]
        : []
      : [{ path: `draft.mocks.${name}`, message: 'is not a tool of the definition' }]),
    ...results.flatMap((result, index) =>
      (result.output === undefined) === (result.error === undefined)
        ? [{ path: `draft.mocks.${name}.results[${index}]`, message: 'must have exactly one of output and error' }]
        : [],
    ),
  ]);
  const [first] = errors;
  if (first) throw new ApiError('invalid_request', `${first.path}: ${first.message}`, { errors: errors.slice(0, 20) });
  await inDraft(() => checkSchemas(ctx, definition));
}

/**
 * A draft can do what a version can, such as sending the secrets of its environment to the hosts that they are for. It therefore takes
 * what changing an agent takes.
 */
function requireScope({ scopes, environments }: Context): void {
  const needed = 'agents:write';
  if (!scopes.has(needed)) {
    throw new ApiError(
      'insufficient_permission',
      `A draft needs the scope "${needed}" as well: it can do what an agent can.`,
    );
  }
  if (environments && unusableScopes.environments.includes(needed)) {
    throw new ApiError('insufficient_permission', 'The key is limited to some environments, so it can run no drafts.');
  }
}

function isToolOf({ tools = [] }: Draft['definition'], name: string): boolean {
  return tools.some((tool) => toolNameOf(tool) === name || (tool.type === 'mcp' && name.startsWith(`${tool.name}__`)));
}

function isRanByProvider({ tools = [] }: Draft['definition'], name: string): boolean {
  return tools.some((tool) => tool.type === 'web_search' && toolNameOf(tool) === name);
}

/**
 * Stores a draft that was checked. `agentId`: the agent that its session belongs to. 404 if there is no such agent, 409
 * `agent_archived`, 422 `url_not_allowed`, 403 if it would reach agents that the key does not.
 */
export async function storeDraft(ctx: Context, agentId: string | undefined, draft: Draft): Promise<StoredDraft> {
  const { db, organizationId } = ctx;
  const definition = definitionOf(draft.definition);
  await inDraft(() => requireValid(ctx, db, definition));
  if (agentId === undefined || agentId === organizationId) {
    if (ctx.agents)
      throw new ApiError('insufficient_permission', 'The key is limited to some agents; name one of them.');
    const now = ctx.clock.now();
    await db.query(sql`
      insert into agents (organization_id, agent_id, version, created_at, updated_at)
      values (${organizationId}, ${organizationId}, 0, ${now}, ${now}) on conflict do nothing`);
    return insertDraft(ctx, organizationId, definition, draft.mocks);
  }
  const newest = await currentVersion(db, organizationId, agentId);
  if (ctx.agents) requireReach(ctx, await readDefinition(db, organizationId, agentId, newest), definition);
  return insertDraft(ctx, agentId, definition, draft.mocks);
}

/** For a definition that is known to be valid. It may be stored before the transaction that opens its session. */
export async function insertDraft(
  { db, clock, organizationId }: Pick<Context, 'clock' | 'organizationId'> & { db: Queryable },
  agentId: string,
  definition: Definition,
  mocks: Draft['mocks'] = {},
): Promise<StoredDraft> {
  const body = { definition: JSON.stringify(storedForm(definition)), mocks: JSON.stringify(mocks) };
  const hash = createHash('sha256').update(`${body.definition}\n${body.mocks}`).digest();
  const now = clock.now();
  for (let attempt = 0; attempt < NUMBERS; attempt++) {
    const version = -1 - (hash.readUInt32BE(attempt * 4) >>> 1);
    const [known] = await db.query<{ isSame: boolean; usedAt: Date }>(sql`
      select sha256 = ${hash} as "isSame", used_at as "usedAt" from agent_drafts
      where organization_id = ${organizationId} and agent_id = ${agentId} and version = ${version}`);
    if (known && !known.isSame) continue;
    const stored = { agentId, version, sha256: hash.toString('hex') };
    if (known && now.getTime() - known.usedAt.getTime() < REFRESH_MS) return stored;
    // It may have been deleted, or inserted by another request, since it was read.
    const [row] = await db.query<{ isSame: boolean }>(sql`
      insert into agent_drafts as d (organization_id, agent_id, version, definition, mocks, sha256, used_at)
      values (${organizationId}, ${agentId}, ${version}, ${body.definition}, ${body.mocks}, ${hash}, ${now})
      on conflict (organization_id, agent_id, version) do update set used_at = greatest(d.used_at, excluded.used_at)
      returning d.sha256 = ${hash} as "isSame"`);
    if (row!.isSame) return stored;
  }
  throw new Error('All numbers of a draft are those of other drafts');
}

/** What a session runs, as it can be sent again. 404 unless it runs a draft. */
export async function getSessionDraft(
  ctx: Context,
  input: Input<'getSessionDraft'>,
): Promise<Result<'getSessionDraft'>> {
  const row = await readSession(ctx.db, ctx.organizationId, uuidOf('ses', input.sessionId));
  const { organizationId, agentId, pinnedVersion } = row;
  if (pinnedVersion === null || !isDraft(pinnedVersion)) throw notFound('draft');
  const { mocks = {}, ...definition } = await readDefinition(ctx.db, organizationId, agentId, pinnedVersion);
  return { draft: { definition, mocks } };
}

/** Whether an organization may have drafts that no session runs any more, for rounds through all of them. */
export function hasOldDrafts(organizationId: Sql, now: Date, within: Within): Sql {
  return areThere(sql`
    from agent_drafts d
    where d.organization_id = ${organizationId} and d.used_at < ${new Date(now.getTime() - UNUSED_MS)}
      ${within(sql`d.organization_id`)}`);
}

/** Deletes the drafts that no session runs any more. */
export async function dropUnusedDrafts(
  db: Queryable,
  organizationId: string,
  now: Date,
  signal: AbortSignal,
): Promise<void> {
  const before = new Date(now.getTime() - UNUSED_MS);
  await deleteInBatches(db, signal, {
    // Locked, because the draft may be in use again.
    find: (limit) => sql`
      select x.agent_id, x.version from agent_drafts x
      where x.organization_id = ${organizationId} and x.used_at < ${before} and not exists (
        select 1 from sessions s
        where s.organization_id = ${organizationId} and s.agent_id = x.agent_id and s.pinned_version = x.version
          and s.pinned_version < 0) ${limit} for update of x`,
    drop: sql`
      delete from agent_drafts d using old
      where d.organization_id = ${organizationId} and d.agent_id = old.agent_id and d.version = old.version`,
  });
}

/** With the paths of errors as they are in the request. */
async function inDraft<T>(fn: () => Promise<T>): Promise<T> {
  try {
    return await fn();
  } catch (error) {
    if (!(error instanceof ApiError) || !error.errors) throw error;
    const errors = error.errors.map(({ path, message }) => ({ path: `draft.definition.${path}`, message }));
    throw new ApiError(error.code, `draft.definition.${error.message}`, { errors });
  }
}
