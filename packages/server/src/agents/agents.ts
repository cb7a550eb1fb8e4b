// Agents. Every change creates a new version. A version never changes, so it can be cached without a limit of time.
import {
  type Agent,
  agentDefaults,
  agentFields,
  type Input,
  type Model,
  type Result,
  type Tool,
  type ToolMock,
} from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import type { Queryable, Tx } from '../db/db.ts';
import { changesBetween, recordEvent } from '../events/record.ts';
import { ApiError, invalidField, notFound } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { formatId, newUuid, uuidOf } from '../lib/ids.ts';
import { firstBytes, integerKey, pageOf, pageRequest } from '../lib/page.ts';
import { checkDefinition, refuse } from './definition.ts';
import { findAgents } from './find-agents.ts';
import { fitErrors } from './fit-errors.ts';
import { recordEndingsOf } from './model-endings.ts';
import { complete, storedForm } from './read-definition.ts';

/** The fields of a version. */
export interface Definition {
  name: string;
  description: string;
  model: Model;
  instructions: string;
  tools: Tool[];
  limits: Agent['limits'];
  outputSchema: Agent['outputSchema'];
  showReasoning: boolean;
  showToolInput: boolean;
  metadata: Agent['metadata'];
  /** Only of a draft: what calls of a tool get instead of being run. */
  mocks?: Readonly<Record<string, ToolMock>>;
}

interface Row {
  agentId: string;
  version: number;
  definition: Definition;
  createdAt: Date;
  updatedAt: Date;
  archivedAt: Date | null;
}

/**
 * 400 with what is wrong with schemas, or does not fit them. An update is checked as far as it changes them: what an earlier release
 * accepted must not prevent another change.
 */
export async function checkSchemas(
  ctx: Context,
  input: Pick<Input<'updateAgent'>, 'tools' | 'outputSchema'>,
): Promise<void> {
  refuse(await fitErrors(ctx.organizationId, input.tools ?? [], input.outputSchema ?? null));
}

/** 400 if tools or model are incomplete, 422 `url_not_allowed` if one of their URLs is not allowed. */
export async function createAgent(ctx: Context, input: Input<'createAgent'>): Promise<Result<'createAgent'>> {
  const definition = definitionOf(input);
  await requireValid(ctx, ctx.db, definition);
  const now = ctx.clock.now();
  const row: Row = { agentId: newUuid(), version: 1, definition, createdAt: now, updatedAt: now, archivedAt: null };
  await inTransaction(ctx, async (tx, ctx) => {
    await Promise.all([
      tx.query(sql`
        insert into agents (organization_id, agent_id, version, created_at, updated_at)
        values (${ctx.organizationId}, ${row.agentId}, 1, ${now}, ${now})`),
      tx.query(insertVersion(ctx.organizationId, row)),
      tx.query(
        recordEvent(ctx, now, {
          type: 'agent.created',
          ...agentEvent(row),
          changes: { name: [null, definition.name] },
        }),
      ),
    ]);
    await recordEndingsOf(tx, ctx.organizationId, { ...row, model: definition.model }, now);
  });
  return { agent: view(row) };
}

/** Newest agent first, each in its newest version; only those that the key is limited to. */
export async function listAgents(ctx: Context, input: Input<'listAgents'>): Promise<Result<'listAgents'>> {
  const { db, organizationId } = ctx;
  const { archived, q, model } = input;
  const request = pageRequest(`agents:${organizationId}`, input);
  const which = sql`
    and a.archived_at is ${archived ? sql`not null` : sql`null`}
    ${request.after === undefined ? empty : sql`and a.agent_id < ${request.after}`}
    ${ctx.agents ? sql`and a.agent_id = any(${[...ctx.agents]}::uuid[])` : empty}`;
  const found =
    q === undefined && model === undefined
      ? undefined
      : await findAgents(db, organizationId, input, which, request.limit + 1);
  const page = sql`
    ${selectAgents()}
    where a.organization_id = ${organizationId} ${which}
      ${found ? sql`and a.agent_id = any(${found.agentIds}::uuid[])` : empty}
    order by a.agent_id desc limit ${request.limit + 1}`;
  const rows = await db.query<Row>(firstBytes(page, { order: sql`"agentId" desc`, bytes: definitionBytes }));
  const until = found?.checkedUntil;
  return pageOf(request, rows, (row) => row.agentId, view, until, until !== undefined);
}

/** Archived agents can be read too. */
export async function getAgent(ctx: Context, input: Input<'getAgent'>): Promise<Result<'getAgent'>> {
  return { agent: view(await readAgent(ctx.db, ctx.organizationId, uuidOf('agt', input.agentId))) };
}

/** Newest first. */
export async function listAgentVersions(
  ctx: Context,
  input: Input<'listAgentVersions'>,
): Promise<Result<'listAgentVersions'>> {
  const request = pageRequest(`agent_versions:${ctx.organizationId}:${input.agentId}`, input, { isKey: integerKey });
  const agent = await readAgent(ctx.db, ctx.organizationId, uuidOf('agt', input.agentId));
  const page = sql`
    select version, definition, created_at as "updatedAt" from agent_versions
    where organization_id = ${ctx.organizationId} and agent_id = ${agent.agentId}
      ${request.after === undefined ? empty : sql`and version < ${Number(request.after)}`}
    order by version desc limit ${request.limit + 1}`;
  const rows = await ctx.db.query<{ version: number; definition: Definition; updatedAt: Date }>(
    firstBytes(page, { order: sql`version desc`, bytes: definitionBytes }),
  );
  return pageOf(
    request,
    rows,
    (row) => String(row.version),
    (row) => view({ ...agent, ...row }),
  );
}

/** Creates a version if anything differs, else changes nothing. 409 `conflict` if `expectedVersion` is not the newest. */
export async function updateAgent(ctx: Context, input: Input<'updateAgent'>): Promise<Result<'updateAgent'>> {
  return inTransaction(ctx, async (tx, ctx) => {
    const before = await lockAgent(tx, ctx, input.agentId);
    if (before.archivedAt) throw new ApiError('agent_archived', "An archived agent can't be changed.");
    const { expectedVersion = before.version } = input;
    if (expectedVersion !== before.version) {
      throw new ApiError(
        'conflict',
        `The agent is at version ${before.version}, not ${expectedVersion}. Read it again.`,
      );
    }
    const definition: Definition = {
      name: input.name ?? before.definition.name,
      description: input.description ?? before.definition.description,
      model: input.model === undefined ? before.definition.model : modelOf(input.model),
      instructions: input.instructions ?? before.definition.instructions,
      tools: input.tools ?? before.definition.tools,
      limits: { ...before.definition.limits, ...input.limits },
      outputSchema: input.outputSchema === undefined ? before.definition.outputSchema : input.outputSchema,
      showReasoning: input.showReasoning ?? before.definition.showReasoning,
      showToolInput: input.showToolInput ?? before.definition.showToolInput,
      metadata: input.metadata ?? before.definition.metadata,
    };
    const changes = changesBetween(before.definition, definition, agentFields);
    if (!changes) return { agent: view(before) };
    await requireValid(ctx, tx, definition);
    requireReach(ctx, before.definition, definition);
    const now = ctx.clock.now();
    const row: Row = { ...before, version: before.version + 1, definition, updatedAt: now };
    await Promise.all([
      tx.query(insertVersion(ctx.organizationId, row)),
      tx.query(sql`
        update agents set version = ${row.version}, updated_at = ${now}
        where organization_id = ${ctx.organizationId} and agent_id = ${row.agentId}`),
      tx.query(
        recordEvent(ctx, now, {
          type: 'agent.updated',
          ...agentEvent(row),
          changes: { version: [before.version, row.version], ...changes },
        }),
      ),
    ]);
    if (input.model !== undefined)
      await recordEndingsOf(tx, ctx.organizationId, { ...row, model: definition.model }, now);
    return { agent: view(row) };
  });
}

/** From then on, new sessions and messages are refused; running turns finish. Repeating it is harmless. */
export async function archiveAgent(ctx: Context, input: Input<'archiveAgent'>): Promise<Result<'archiveAgent'>> {
  return inTransaction(ctx, async (tx, ctx) => {
    const row = await lockAgent(tx, ctx, input.agentId);
    const now = ctx.clock.now();
    const archivedAt = row.archivedAt ?? now;
    if (!row.archivedAt) {
      await Promise.all([
        tx.query(sql`
          update agents set archived_at = ${now}, updated_at = ${now}
          where organization_id = ${ctx.organizationId} and agent_id = ${row.agentId}`),
        tx.query(recordEvent(ctx, now, { type: 'agent.archived', ...agentEvent(row) })),
      ]);
    }
    return { agentId: formatId('agt', row.agentId), deleted: true, archivedAt: archivedAt.toISOString() };
  });
}

/** The newest version's number; 404 if there is no such agent, 409 `agent_archived` if it is archived. */
export async function currentVersion(tx: Queryable, organizationId: string, agentId: string): Promise<number> {
  const version = await latestVersion(tx, organizationId, agentId);
  // The agent that drafts without an agent belong to has no version (drafts.ts).
  if (version === 0) throw notFound('agent');
  return version;
}

/** What the next turn of a session runs: the session's own version, or the newest. 409 `agent_archived`. */
export async function nextVersion(
  tx: Queryable,
  { organizationId, agentId, pinnedVersion }: { organizationId: string; agentId: string; pinnedVersion: number | null },
): Promise<number> {
  const newest = await latestVersion(tx, organizationId, agentId);
  return pinnedVersion ?? newest;
}

async function latestVersion(tx: Queryable, organizationId: string, agentId: string): Promise<number> {
  const [agent] = await tx.query<{ version: number; archived: boolean }>(sql`
    select version, archived_at is not null as archived from agents
    where organization_id = ${organizationId} and agent_id = ${agentId} for key share`);
  if (!agent) throw notFound('agent');
  if (agent.archived)
    throw new ApiError('agent_archived', 'The agent is archived and accepts no new sessions or messages.');
  return agent.version;
}

/** With the default of each field that is left out. */
export function definitionOf(input: Input<'createAgent'>): Definition {
  return {
    name: input.name,
    description: input.description ?? agentDefaults.description,
    model: modelOf(input.model),
    instructions: input.instructions ?? agentDefaults.instructions,
    tools: input.tools ?? agentDefaults.tools,
    limits: { ...agentDefaults.limits, ...input.limits },
    outputSchema: input.outputSchema ?? agentDefaults.outputSchema,
    showReasoning: input.showReasoning ?? agentDefaults.showReasoning,
    showToolInput: input.showToolInput ?? agentDefaults.showToolInput,
    metadata: input.metadata ?? agentDefaults.metadata,
  };
}

/** 400 if tools or model are incomplete, 422 `url_not_allowed` if one of their URLs is not allowed. */
export async function requireValid(
  { egress, organizationId }: Context,
  db: Queryable,
  definition: Definition,
): Promise<void> {
  checkDefinition(definition, egress);
  await requireAgents(db, organizationId, definition);
}

/** 400 if an `agent` tool does not name an agent of the organization. */
async function requireAgents(db: Queryable, organizationId: string, { tools }: Definition): Promise<void> {
  const named = tools.flatMap((tool, index) =>
    tool.type === 'agent' ? [{ index, uuid: uuidOf('agt', tool.agentId) }] : [],
  );
  if (named.length === 0) return;
  const rows = await db.query<{ agentId: string }>(sql`
    select agent_id as "agentId" from agents
    where organization_id = ${organizationId} and agent_id = any(${named.map(({ uuid }) => uuid)}::uuid[])
      and version > 0`);
  const known = new Set(rows.map(({ agentId }) => agentId));
  const missing = named.find(({ uuid }) => !known.has(uuid));
  if (missing) throw invalidField(`tools[${missing.index}].agentId`, 'is not an agent of this organization');
}

/** A key that is limited to some agents would reach any other by giving it to one of them as a tool. */
export function requireReach({ agents }: Context, before: Definition, after: Definition): void {
  if (!agents) return;
  const called = ({ tools }: Definition) => tools.flatMap((tool) => (tool.type === 'agent' ? [tool.agentId] : []));
  const known = new Set([...called(before), ...agents.map((agentId) => formatId('agt', agentId))]);
  if (called(after).every((agentId) => known.has(agentId))) return;
  throw new ApiError('insufficient_permission', 'The key is limited to some agents; a tool would call another one.');
}

async function lockAgent(tx: Tx, ctx: Context, agentId: string): Promise<Row> {
  const uuid = uuidOf('agt', agentId);
  // Locked first, then read: a join that waited for the lock would still look up the previous version.
  await tx.query(sql`
    select 1 from agents where organization_id = ${ctx.organizationId} and agent_id = ${uuid} for no key update`);
  return readAgent(tx, ctx.organizationId, uuid);
}

async function readAgent(db: Queryable, organizationId: string, agentId: string): Promise<Row> {
  const [row] = await db.query<Row>(sql`
    ${selectAgents()} where a.organization_id = ${organizationId} and a.agent_id = ${agentId}`);
  if (!row) throw notFound('agent');
  return { ...row, definition: complete(row.definition) };
}

function selectAgents(): Sql {
  return sql`
    select a.agent_id as "agentId", a.version, v.definition, a.created_at as "createdAt", a.updated_at as "updatedAt",
      a.archived_at as "archivedAt"
    from agents a
    join agent_versions v
      on v.organization_id = a.organization_id and v.agent_id = a.agent_id and v.version = a.version`;
}

const definitionBytes = sql`octet_length(definition::text)`;

function insertVersion(organizationId: string, row: Row): Sql {
  return sql`
    insert into agent_versions (organization_id, agent_id, version, definition, created_at)
    values (${organizationId}, ${row.agentId}, ${row.version}, ${JSON.stringify(storedForm(row.definition))}, ${row.updatedAt})`;
}

/** `provider/model` is short for the object; the model's name may contain further slashes. */
function modelOf(model: Model | string): Model {
  if (typeof model !== 'string') return model;
  const slash = model.indexOf('/');
  const provider = model.slice(0, slash) as Model['provider'];
  const name = model.slice(slash + 1);
  return provider === 'worker' ? { provider, queue: name } : { provider, model: name };
}

/** How events of the event log name an agent. */
function agentEvent(row: { agentId: string }) {
  const agentId = formatId('agt', row.agentId);
  return { resource: { type: 'agent', id: agentId }, agentId };
}

function view(row: Row): Agent {
  const definition = complete(row.definition);
  return {
    agentId: formatId('agt', row.agentId),
    version: row.version,
    name: definition.name,
    description: definition.description,
    model: definition.model,
    instructions: definition.instructions,
    tools: definition.tools,
    limits: definition.limits,
    outputSchema: definition.outputSchema,
    showReasoning: definition.showReasoning,
    showToolInput: definition.showToolInput,
    metadata: definition.metadata,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
    archivedAt: row.archivedAt?.toISOString() ?? null,
  };
}
