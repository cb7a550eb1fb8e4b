// Opens what a link names: a version of an agent, or a turn of a session with what its tools returned.
import type { Agent, Message, Session, SessionTurn, Signalbox, TurnOperation } from '@signalbox/client';
import { type Definition, definitionOf } from '../agents/definition.ts';
import { modelName, modelOf } from '../agents/model.ts';
import type { PlaygroundSearch } from './search-params.ts';
import { type Column, choicesOf, emptyMessage, newColumn, type Playground, type ToolChoice, toolsOf } from './state.ts';

const fresh = { environment: null, origin: null, isSetupHidden: false, messages: [emptyMessage] };

export async function openEntry(client: Signalbox, search: PlaygroundSearch): Promise<Playground | undefined> {
  if (search.session !== undefined) return ofSession(client, search.session, search.turn, search.step);
  if (search.agent === undefined) return undefined;
  return { ...fresh, columns: [columnOf(await readVersion(client, search.agent, search.version))] };
}

export function columnOf(agent: Agent): Column {
  const { agentId, version, name } = agent;
  return newColumn(definitionOf(agent), { source: { agentId, version, name } });
}

export async function readVersion(client: Signalbox, agentId: string, version?: number): Promise<Agent> {
  const newest = await client.agents.get(agentId);
  if (version === undefined || version === newest.version) return newest;
  for await (const one of client.agents.versions(agentId, { limit: 100 })) if (one.version === version) return one;
  return newest;
}

async function ofSession(
  client: Signalbox,
  sessionId: string,
  wanted: number | undefined,
  step: number | undefined,
): Promise<Playground> {
  const session = await client.sessions.get(sessionId);
  const turn = Math.max(1, Math.min(wanted ?? session.turn, session.turn));
  const [messages, read] = await Promise.all([
    messagesOfTurn(client, sessionId, turn),
    readTurn(client, sessionId, turn),
  ]);
  const call = read?.operations.find((one) => one.kind === 'model' && one.step === step);
  const recorded = recordedResults(messages);
  return {
    columns: [await columnOfSession(client, session, read, call, recorded)],
    messages: inputOf(messages),
    environment: session.environment,
    origin: { sessionId, turn, ...(call && { step: call.step }) },
    isSetupHidden: false,
  };
}

/** `call`: of the step that the link names. Another model may have responded to it than to others. */
async function columnOfSession(
  client: Signalbox,
  { sessionId, agentId, draft, agentVersion }: Session,
  turn: SessionTurn | undefined,
  call: TurnOperation | undefined,
  recorded: Column['tools'],
): Promise<Column> {
  if (draft) {
    const { definition, mocks } = await client.sessions.draft(sessionId);
    // The agent of a draft may not have been saved.
    const agent = await client.agents.get(agentId).catch(() => undefined);
    const source = agent ? { agentId, version: agent.version, name: agent.name } : null;
    const ran = definition as unknown as Definition;
    return newColumn(withModelOf(ran, call), { source, tools: { ...choicesOf(mocks), ...recorded } });
  }
  const version = turn?.agentVersion ?? agentVersion ?? undefined;
  const { definition, ...column } = columnOf(await readVersion(client, agentId, version));
  const ran = { ...column, definition: withModelOf(definition, call) };
  return { ...ran, tools: { ...unrecorded(ran), ...recorded } };
}

/** With the model that responded, if it was a fallback. */
function withModelOf(definition: Definition, call: TurnOperation | undefined): Definition {
  const model = modelOf(definition.model);
  const { fallbacks = [], compaction } = model;
  if (!call || modelName(model) === call.name) return definition;
  const used = fallbacks.find((one) => modelName(one) === call.name);
  return used
    ? { ...definition, model: { ...modelOf(used), ...(compaction !== undefined && { compaction }) } }
    : definition;
}

/** Turns are listed from the newest. */
const MAX_TURNS_READ = 500;

/** Undefined if it is too far back. */
export async function readTurn(client: Signalbox, sessionId: string, turn: number): Promise<SessionTurn | undefined> {
  let read = 0;
  for await (const one of client.sessions.turns(sessionId, { limit: 100 })) {
    if (one.turn === turn) return one;
    read += 1;
    if (one.turn < turn || read === MAX_TURNS_READ) return undefined;
  }
  return undefined;
}

/** Tools that the turn did not call: another definition may call them, and repeating a turn must have no effect. */
function unrecorded({ definition }: Column): Column['tools'] {
  const result = { kind: 'error' as const, text: 'This tool was not called before, so it has no recorded result.' };
  const choice: ToolChoice = { use: 'mock', results: [result], keepsApproval: false };
  return Object.fromEntries(toolsOf(definition).map(({ name }) => [String(name), choice]));
}

/** Oldest first. The transcript is read from its end. */
export async function messagesOfTurn(client: Signalbox, sessionId: string, turn: number): Promise<Message[]> {
  const found: Message[] = [];
  for await (const message of client.sessions.messages(sessionId, { order: 'desc', limit: 100 })) {
    if (message.turn === null || message.turn > turn) continue;
    if (message.turn < turn) break;
    found.push(message);
  }
  return found.reverse();
}

function inputOf(messages: readonly Message[]): Playground['messages'] {
  const content = messages.find(({ role }) => role === 'user')?.content ?? [];
  const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
  const files = content.flatMap((part) =>
    part.type === 'file' ? [{ fileId: part.fileId, filename: part.filename ?? part.fileId }] : [],
  );
  return [{ text, files }];
}

/** Each tool that was called is mocked with what it returned, so repeating the turn has no effect outside. */
function recordedResults(messages: readonly Message[]): Column['tools'] {
  const parts = messages.flatMap(({ content }) => content);
  const choices: Record<string, ToolChoice> = {};
  for (const call of parts) {
    // What the provider runs can't be mocked.
    if (call.type !== 'tool_call' || call.by) continue;
    const result = parts.find((part) => part.type === 'tool_result' && part.toolCallId === call.toolCallId);
    if (result?.type !== 'tool_result') continue;
    const { error, output } = result;
    const recorded =
      error === undefined
        ? { kind: 'output' as const, text: JSON.stringify(output, null, 2) ?? 'null' }
        : { kind: 'error' as const, text: error };
    const results = [...(choices[call.tool]?.results ?? []), recorded];
    choices[call.tool] = { use: 'mock', results, keepsApproval: false };
  }
  return choices;
}
