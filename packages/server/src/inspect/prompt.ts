// The prompt of a model call, built again: from the messages before its response, the summary that was in force, and the agent's
// version, by the code that built it when it was sent (turn/, models/).
//
// What that cannot know is said: the tools that an MCP server listed then, the bytes of files, and how long messages were cut if other
// models came before this one.
import {
  imageSidesOf,
  type MessagePart,
  type Model,
  type OperationDetails,
  type SessionTurn,
} from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Definition } from '../agents/agents.ts';
import { modelsOf } from '../agents/read-definition.ts';
import type { Context } from '../lib/context.ts';
import { formatId } from '../lib/ids.ts';
import { isSameJson } from '../lib/json/same-json.ts';
import { type AsSent, requestAsSent } from '../models/as-sent.ts';
import type { ModelCall } from '../models/model/model.ts';
import { withoutProviderData } from '../models/prompt/provider-data.ts';
import { withoutShownReasoning } from '../models/providers/provider.ts';
import { type Compaction, splitPinned } from '../session-rows/compactions.ts';
import { isOfSource, transcriptSources } from '../session-rows/inherited.ts';
import { leftOutAt, leftOutOf, leftOutToolText, withoutMessages } from '../session-rows/left-out.ts';
import { messageIdOf, type Operation } from '../session-rows/operations.ts';
import type { SessionRow } from '../session-rows/session.ts';
import type { TranscriptEntry } from '../session-rows/transcript.ts';
import type { Redacted } from '../tools/tool/redact.ts';
import { ownTools, withoutTools } from '../tools/tool/turn-tool.ts';
import { unavailableText } from '../tools/tool/unavailable.ts';
import { modelCallOf } from '../turn/ask-models.ts';
import { repeatedSummaryCall } from '../turn/compact.ts';
import { modelView } from '../turn/compaction.ts';
import { contextOf } from '../turn/context.ts';
import { modelName } from '../usage/prices.ts';
import type { Rebuilt } from './get-operation.ts';

type Entry = TranscriptEntry & { content: MessagePart[] };

/** The limit of the messages in a response. More would take the event loop and a browser long to read. */
const MESSAGES_MAX_BYTES = 1024 * 1024;

export async function readModelCall(
  ctx: Context,
  session: SessionRow,
  definition: Definition,
  operation: Operation,
  turn: SessionTurn,
): Promise<Rebuilt> {
  if (operation.kind === 'compaction') return readSummaryCall(ctx, session, definition, operation, turn);
  const { entry, before } = await readPlace(ctx, session, operation);
  const response = entry ? viewResponse(operation, entry) : null;
  const compaction = await readCompaction(ctx, session, operation);
  const { entries, leftOut } = await readEntries(ctx, session, compaction, { turn: operation.turn, position: before });
  const notes: string[] = [];
  if (leftOut > 0)
    notes.push(
      `The prompt is longer than 1 MiB. Its ${leftOut} oldest messages are left out here, and so is the request.`,
    );

  const models = modelsOf(definition);
  const name = operation.model ?? operation.trace?.attempts?.at(-1)?.model;
  const model = models.find((one) => modelName(one) === name) ?? models[0]!;
  const servers = definition.tools.flatMap((tool) => (tool.type === 'mcp' ? [tool.name] : []));
  if (servers.length > 0)
    notes.push(`The tools that ${servers.join(', ')} listed then are not stored, so they are missing here.`);
  if (turn.unavailableToolServers.length > 0)
    notes.push('Servers that were unavailable only in another part of the turn may be named in the instructions.');
  const state = {
    ...stateOf(session, definition, turn, operation, entries, compaction),
    models: [model, ...models.filter((one) => one !== model)],
  };
  const { view } = contextOf(state);
  const isCut = !isSameJson(view, modelView(state.transcript, compaction, Number.POSITIVE_INFINITY));
  if (isCut && (models.length > 1 || servers.length > 0))
    notes.push('Long messages were cut for the model. Where exactly may differ by a few words.');
  const call = asRepeated(modelCallOf(state, model, view), operation);
  const sent = leftOut > 0 ? null : await requestAsSent(call).catch(() => null);
  if (sent && sent.files > 0) {
    notes.push('The contents of files are shown as {{files.…}} in the request.');
    if (imageSidesOf(model.provider)) notes.push('The model got a description instead of an image that was too large.');
  }
  if (model.provider === 'worker')
    notes.push('A program of yours was the model. It got this, and called its own model.');
  return {
    prompt: viewPrompt(withoutRefusedTools(call, sent), model, leftOut),
    response,
    request: sent?.request ?? null,
    exact: notes.length === 0,
    notes,
  };
}

/** What the turn machine had then, as far as it is known. */
function stateOf(
  { organizationId, sessionId, environment, leftOut }: SessionRow,
  definition: Definition,
  { unavailableToolServers }: SessionTurn,
  operation: Operation,
  transcript: Entry[],
  compaction: Compaction | null,
) {
  const column = leftOutAt(leftOut, operation);
  const then = leftOutOf(column);
  const tools = ownTools(definition.tools);
  return {
    organizationId,
    sessionId: formatId('ses', sessionId),
    environment,
    definition,
    models: modelsOf(definition),
    tools: withoutTools(tools, then.tools),
    unavailable: [
      ...unavailableToolServers.map(({ name, reason }) => unavailableText({ name, reason: reason as Redacted })),
      ...then.tools.map(leftOutToolText),
    ],
    leftOut: column,
    transcript: withoutMessages(transcript, then),
    compaction,
    reportedTokens: null,
    modelCalls: 0,
  };
}

/** The call of the model that wrote a summary: it got the previous summary and the messages that this one replaces. */
async function readSummaryCall(
  ctx: Context,
  session: SessionRow,
  definition: Definition,
  operation: Operation,
  turn: SessionTurn,
): Promise<Rebuilt> {
  const none = { prompt: null, response: null, request: null, exact: false };
  const written = await readWritten(ctx, session, operation);
  if (!written) return { ...none, notes: ['No summary was written, so what it would have replaced is not known.'] };
  if (operation.model === null)
    return { ...none, notes: ['No model wrote a summary: the messages were left out without one.'] };
  const { from, previous } = written;
  const { entries, leftOut } = await readEntries(ctx, session, previous, from);
  const state = stateOf(session, definition, turn, operation, entries, previous);
  const part = { entries: splitPinned(state.transcript, previous?.from ?? { turn: 0, position: 0 }).rest, from };
  const repeated = repeatedSummaryCall(state, part, written.maxTokens, operation.model);
  if (!repeated) return { ...none, notes: ['The agent has no such model for summaries any more.'] };
  const { call, isSure } = repeated;
  const notes: string[] = [];
  if (leftOut > 0) notes.push(`The messages are longer than 1 MiB. The ${leftOut} oldest are left out here.`);
  if (!isSure) notes.push('Where long messages were cut, and how long the summary may be, may differ a little.');
  const sent = leftOut > 0 ? null : await requestAsSent(call).catch(() => null);
  const prompt = viewPrompt(call, call.config, leftOut);
  return { prompt, response: null, request: sent?.request ?? null, exact: notes.length === 0, notes };
}

/** Without what the provider had refused. */
function asRepeated(call: ModelCall, { trace }: Operation): ModelCall {
  const lacked = trace?.sentWithout ?? [];
  const so = lacked.includes('reasoning') ? withoutShownReasoning(call) : call;
  const withoutParameters = lacked.filter((what) => what !== 'reasoning' && what !== 'providerData');
  return { ...(lacked.includes('providerData') ? withoutProviderData(so) : so), withoutParameters };
}

/** Without the tools that were left out of the request. */
function withoutRefusedTools(call: ModelCall, sent: AsSent | null): ModelCall {
  const leftOut = new Set(sent?.leftOut.map(({ name }) => name));
  return leftOut.size === 0 ? call : { ...call, tools: call.tools.filter(({ name }) => !leftOut.has(name)) };
}

function viewPrompt(call: ModelCall, model: Model, messagesLeftOut: number): OperationDetails['prompt'] {
  const { script: _, ...settings } = call.config.settings ?? {};
  return {
    model: modelName(model),
    instructions: call.instructions,
    messages: call.transcript.map(({ role, content }) => ({ role, content: [...content] })),
    messagesLeftOut,
    tools: call.tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
    settings,
    maxOutputTokens: call.limits.maxOutputTokens,
    outputSchema: call.outputSchema,
  };
}

function viewResponse(
  { status, output }: Operation,
  { content, providerData }: TranscriptEntry,
): OperationDetails['response'] {
  const ended = (output as { stopReason?: 'refusal' | 'maxOutputTokens' } | null)?.stopReason;
  const normal = content.some((part) => part.type === 'tool_call' && part.by === undefined) ? 'toolCalls' : 'endTurn';
  return {
    content,
    reasoning: reasoningIn(providerData),
    stopReason: status === 'succeeded' ? (ended ?? normal) : null,
  };
}

/** What a provider showed of its model's reasoning. It may have kept the rest to itself, encrypted. */
function reasoningIn(providerData: unknown): string | null {
  type Parts = readonly { type?: string; text?: string }[];
  const data = providerData as { parts?: Parts; ranParts?: Parts } | null | undefined;
  const parts = data?.parts ?? data?.ranParts;
  if (!Array.isArray(parts)) return null;
  const text = parts.flatMap((part) => (part.type === 'reasoning' && part.text ? [part.text] : [])).join('\n\n');
  return text === '' ? null : text;
}

/** The response of a model call, and the place of the first message of its turn that it did not get. */
async function readPlace(
  { db, organizationId }: Context,
  { sessionId }: SessionRow,
  operation: Operation,
): Promise<{ entry: TranscriptEntry | undefined; before: number }> {
  // A call without a response got what the next one with a response got: nothing is added in between.
  const [found] = await db.query<TranscriptEntry>(sql`
    select m.turn, m.position, m.message_id as "messageId", m.role, m.content, m.provider_data as "providerData",
      m.created_at as "createdAt"
    from operations o
    join messages m on m.organization_id = ${organizationId} and m.session_id = ${sessionId}
      and m.turn = ${operation.turn} and m.message_id = o.operation_id
    where o.organization_id = ${organizationId} and o.session_id = ${sessionId} and o.turn = ${operation.turn}
      and o.kind = 'model' and o.step >= ${operation.step}
    order by o.step limit 1`);
  const isOwn = found !== undefined && found.messageId === messageIdOf(operation);
  return { entry: isOwn ? found : undefined, before: found?.position ?? AFTER_ALL };
}

const AFTER_ALL = 2_147_483_647;

/** The summary that was in force: compactions of the same step come before its model call. */
async function readCompaction(
  { db, organizationId }: Context,
  { sessionId }: SessionRow,
  { turn, step }: Operation,
): Promise<Compaction | null> {
  const [found] = await db.query<Compaction>(sql`
    select json_build_object('turn', c.from_turn, 'position', c.from_position) as from, c.summary,
      c.max_tokens::float8 as "maxTokens", c.max_tokens_of as "maxTokensOf"
    from compactions c
    left join operations o on o.organization_id = ${organizationId} and o.operation_id = c.operation_id
    where c.organization_id = ${organizationId} and c.session_id = ${sessionId}
      and (c.turn < ${turn} or (c.turn = ${turn} and o.step <= ${step}))
    order by c.from_turn desc, c.from_position desc limit 1`);
  return found ?? null;
}

interface Written extends Pick<Compaction, 'from' | 'maxTokens'> {
  /** The summary that it replaced. */
  readonly previous: Compaction | null;
}

/** What the operation wrote; undefined if it wrote nothing. */
async function readWritten(
  { db, organizationId }: Context,
  { sessionId }: SessionRow,
  { operationId }: Operation,
): Promise<Written | undefined> {
  const [found] = await db.query<Written>(sql`
    select json_build_object('turn', c.from_turn, 'position', c.from_position) as from,
      c.max_tokens::float8 as "maxTokens", (
        select json_build_object('from', json_build_object('turn', p.from_turn, 'position', p.from_position),
          'summary', p.summary, 'maxTokens', p.max_tokens::float8, 'maxTokensOf', p.max_tokens_of)
        from compactions p
        where p.organization_id = ${organizationId} and p.session_id = ${sessionId}
          and (p.from_turn, p.from_position) < (c.from_turn, c.from_position)
        order by p.from_turn desc, p.from_position desc limit 1) as previous
    from compactions c
    where c.organization_id = ${organizationId} and c.session_id = ${sessionId} and c.operation_id = ${operationId}`);
  return found;
}

/** The messages that the model got, the newest first as far as they fit, in their order. */
async function readEntries(
  { db, organizationId }: Context,
  { sessionId }: SessionRow,
  compaction: Compaction | null,
  before: { turn: number; position: number },
): Promise<{ entries: Entry[]; leftOut: number }> {
  const from = compaction?.from ?? { turn: 0, position: 0 };
  const rows = await db.query<TranscriptEntry & { found: number }>(sql`
    select turn, position, message_id as "messageId", role, content, provider_data as "providerData",
      created_at as "createdAt", found
    from (
      select m.*, count(*) over ()::integer as found,
        sum(octet_length(m.content::text) + coalesce(octet_length(m.provider_data::text), 0))
          over (order by m.turn desc, m.position desc rows between unbounded preceding and 1 preceding) as newer
      from (${transcriptSources({ organizationId, sessionId })}) s
      cross join lateral (
        select * from messages m
        where m.organization_id = ${organizationId} and ${isOfSource}
          and (m.turn, m.position) < (${before.turn}, ${before.position})
          and ((m.turn, m.position) >= (${from.turn}, ${from.position})
            or (m.position = 0 and m.turn in (1, ${from.turn})))
        offset 0) m) sized
    where newer is null or newer < ${MESSAGES_MAX_BYTES}
    order by turn, position`);
  return { entries: rows.map(({ found: _, ...entry }) => entry), leftOut: (rows[0]?.found ?? 0) - rows.length };
}
