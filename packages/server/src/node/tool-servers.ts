// MCP servers that can't list their tools, and tools that a model does not get. The model's instructions name the servers. The turn
// shows both. An event and a log line record when a server of an agent in an environment becomes unavailable and when it is available
// again. They are not repeated while nothing changes: if a server is unavailable for a day, an agent can have thousands of turns.
import sql from 'sql-template-tag';
import { recordEvent } from '../events/record.ts';
import { isDraft } from '../lib/draft-version.ts';
import { formatId } from '../lib/ids.ts';
import { sentToolsOf } from '../models/tools/tools.ts';
import { leftOutOf, leftOutToolText } from '../session-rows/left-out.ts';
import { sessionEvent } from '../session-rows/session.ts';
import { mockedTools } from '../tools/tool/mocks.ts';
import type { Redacted } from '../tools/tool/redact.ts';
import type { ListedTools, UnavailableServer } from '../tools/tool/tool.ts';
import { withoutTools } from '../tools/tool/turn-tool.ts';
import { unavailableText } from '../tools/tool/unavailable.ts';
import type { TurnState } from '../turn/turn.ts';
import { modelName } from '../usage/prices.ts';
import { agentSource, logIds, type TurnContext } from './turn-context.ts';

/** Enough of a server's response to show what is wrong. */
const REASON_MAX_CHARACTERS = 500;

/** The tools that the turn has, and the texts for the model about those that are unavailable. */
export function setTools(state: TurnState, { tools, unavailable }: ListedTools): void {
  const leftOut = leftOutOf(state.leftOut).tools;
  state.tools = mockedTools(withoutTools(tools, leftOut), state.definition.mocks);
  state.unavailable = [...unavailable.map(unavailableText), ...leftOut.map(leftOutToolText)];
}

/** `found`: servers that are unavailable. */
export async function recordMissingTools(context: TurnContext, found: readonly UnavailableServer[]): Promise<void> {
  logLeftOutTools(context);
  const { platform, session, state } = context;
  const { organizationId, agentId, environment } = session.row;
  const names = state.definition.tools.flatMap((tool) => (tool.type === 'mcp' ? [tool.name] : []));
  if (names.length === 0) return;
  const unavailable = found.map(({ name, reason }) => ({ name, reason: beginningOf(reason) }));
  await recordOnTurn(context, unavailable);
  // The servers of a draft are not those of its agent.
  if (isDraft(session.row.agentVersion)) return;

  const [agent] = await platform.db.query<{ known: Record<string, string> }>(sql`
    select unavailable_servers as known from agents
    where organization_id = ${organizationId} and agent_id = ${agentId}`);
  for (const name of names) {
    const before = agent?.known[`${environment}/${name}`];
    const now = unavailable.find((server) => server.name === name)?.reason;
    if ((before === undefined) !== (now === undefined)) await recordChange(context, name, before, now);
  }
}

/** Keeps the servers that were unavailable when the turn was last loaded: a turn that waited is loaded again. */
async function recordOnTurn({ session, state }: TurnContext, unavailable: readonly UnavailableServer[]): Promise<void> {
  const [first] = state.operations;
  const known = first!.unavailableServers ?? [];
  const added = unavailable.filter(({ name }) => !known.some((server) => server.name === name));
  if (added.length === 0) return;
  first!.unavailableServers = [...known, ...added];
  const update = sql`
    update operations set unavailable_servers = ${JSON.stringify(first!.unavailableServers)}
    where organization_id = ${session.row.organizationId} and operation_id = ${first!.operationId}`;
  await session.commit({ statements: [update] });
}

/** Exactly one of `before` and `now` is defined. If several turns find it at once, one of them records it. */
async function recordChange(context: TurnContext, name: string, before: string | undefined, now: Redacted | undefined) {
  const { platform, session } = context;
  const { organizationId, agentId, environment } = session.row;
  const key = `${environment}/${name}`;
  const isRecorded = await platform.db.transaction(async (tx) => {
    const changed = await tx.execute(
      now === undefined
        ? sql`
          update agents set unavailable_servers = unavailable_servers - ${key}::text
          where organization_id = ${organizationId} and agent_id = ${agentId}
            and jsonb_exists(unavailable_servers, ${key})`
        : sql`
          update agents set unavailable_servers = unavailable_servers || jsonb_build_object(${key}::text, ${now}::text)
          where organization_id = ${organizationId} and agent_id = ${agentId}
            and not jsonb_exists(unavailable_servers, ${key})`,
    );
    if (changed === 0) return false;
    await tx.query(
      recordEvent(agentSource(context), platform.clock.now(), {
        ...sessionEvent(session.row),
        type: now === undefined ? 'tool_server.available' : 'tool_server.unavailable',
        outcome: now === undefined ? 'success' : 'failure',
        resource: { type: 'tool_server', id: `${formatId('agt', agentId)}/${name}` },
        changes: { reason: [before ?? null, now ?? null] },
      }),
    );
    return true;
  });
  if (!isRecorded) return;
  const ids = { ...logIds(context), environment, server: name };
  if (now === undefined) platform.log.info(ids, 'tool server available again');
  else platform.log.warn({ ...ids, reason: now }, 'tool server unavailable');
}

/** How many tools a log line names. */
const MAX_NAMED = 10;
const MAX_LOGGED = 1000;
/** What this node has logged: a turn of the same agent with the same model says nothing new. */
const logged = new Set<string>();

/** Logs the tools that the agent's model does not get. */
function logLeftOutTools(context: TurnContext): void {
  const { platform, session, state } = context;
  const [config] = state.models;
  const leftOut = (config && sentToolsOf({ config, tools: state.tools })?.leftOut) ?? [];
  if (leftOut.length === 0) return;
  const tools = leftOut.slice(0, MAX_NAMED).map(({ name, reason }) => `${name}: ${reason}`);
  const key = JSON.stringify([session.row.agentId, session.row.agentVersion, leftOut.length, tools]);
  if (logged.has(key)) return;
  if (logged.size >= MAX_LOGGED) logged.clear();
  logged.add(key);
  const about = { ...logIds(context), model: modelName(config!), count: leftOut.length, tools };
  platform.log.warn(about, 'some tools are left out of the requests to a model');
}

function beginningOf(reason: Redacted): Redacted {
  return reason.slice(0, REASON_MAX_CHARACTERS).toWellFormed() as Redacted;
}
