// The tools that an MCP server offers, as a turn uses them. The server wrote everything in the list, so each tool is checked by
// itself: tools that can't be offered are left out, and the others stay.
import { createHash } from 'node:crypto';
import type { McpTool, ToolApproval } from '@signalbox/contract';
import { fromDraft04 } from '../../schemas/draft-04.ts';
import { fitProblems, isOfObject, NOT_OF_OBJECT, schemaProblems } from '../../schemas/schemas.ts';
import { type Redact, type Redacted, trustedText } from '../tool/redact.ts';
import { shownJson, shownText } from '../tool/result.ts';
import type { ToolOwner, TurnTool } from '../tool/tool.ts';
import { approvalOf, isSinglePolicy } from '../tool/turn-tool.ts';
import type { McpConnection } from './mcp-connection.ts';
import { McpResponseError } from './mcp-failure.ts';

/** Servers list a few dozen tools per page. More pages than this are a list without an end. */
const MAX_PAGES = 32;
/** Also with `allowedTools`, because the whole list is read. */
const MAX_LISTED = 2000;
/** A model can't choose among more, and providers refuse them. */
const MAX_OFFERED = 200;
/** Limit on the size of all descriptions and schemas together, as JSON. */
const MAX_OFFERED_BYTES = 1024 * 1024;
/** The same limit as for a tool of the agent's definition. */
const DESCRIPTION_MAX_CHARACTERS = 4000;
/** No correct list has more of them. */
const MAX_BROKEN_SCHEMAS = 10;
/** They share one time limit for checking schemas. If one takes too long, it counts as broken, and so do those after it. */
const JUDGED_TOGETHER = 10;

/** The limit of model providers, and therefore of every tool. */
const NAME_MAX_CHARACTERS = 64;
/** For the server's own names; the protocol says 128. */
const REMOTE_NAME_MAX_CHARACTERS = 200;
const DIGEST_CHARACTERS = 8;
/** How many names an error quotes. */
const MAX_QUOTED = 20;
/** The limit of a text about what does not fit a rule; it has names that the server chose. */
const MAX_PROBLEM_CHARACTERS = 1000;

export interface Listing {
  tools: TurnTool[];
  /** The server's names of tools that can't be offered, with the reasons, for the operator. */
  leftOut: { name: Redacted; why: Redacted }[];
  /** Why none of the tools may be offered, although they were listed. */
  problem: Redacted | undefined;
}

/** All pages, as received. Throws what the connection throws. */
export async function listAll(connection: McpConnection, signal: AbortSignal): Promise<unknown[]> {
  const listed: unknown[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await connection.listPage(cursor, signal);
    const { tools, nextCursor } = (page ?? {}) as { tools?: unknown; nextCursor?: unknown };
    if (!Array.isArray(tools)) throw new McpResponseError('the list of tools is not a list');
    for (const tool of tools) listed.push(tool);
    if (listed.length > MAX_LISTED) throw new McpResponseError(`it lists more than ${MAX_LISTED} tools`);
    if (typeof nextCursor !== 'string' || nextCursor === '' || nextCursor === cursor) return listed;
    cursor = nextCursor;
  }
  throw new McpResponseError(`the list of tools has more than ${MAX_PAGES} pages`);
}

/** The tools that the agent allows, or `all` of them. Throws `McpResponseError` if there is too much to offer. */
export async function turnTools(
  { organizationId }: Pick<ToolOwner, 'organizationId'>,
  server: McpTool,
  listed: readonly unknown[],
  redact: Redact,
  { all = false } = {},
): Promise<Listing> {
  const most = all ? MAX_LISTED : MAX_OFFERED;
  const leftOut: Listing['leftOut'] = [];
  const found = new Map<string, RemoteTool>();
  let broken = 0;
  // A server may list its tools in any order. In an order of our own the prompt begins the same on every node, so that its provider
  // finds it in its cache.
  const read = listed
    .map(readTool)
    .filter((tool) => tool !== undefined)
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  const wanted = all ? read : read.filter(({ name }) => server.allowedTools?.includes(name) ?? true);
  for await (const [tool, schemaIsBroken] of judged(organizationId, wanted, redact)) {
    const { name } = tool;
    if (schemaIsBroken) broken += 1;
    if (broken > MAX_BROKEN_SCHEMAS)
      throw new McpResponseError(`more than ${MAX_BROKEN_SCHEMAS} tools have schemas that can’t be evaluated`);
    const why = found.has(name)
      ? trustedText`is listed twice`
      : (unusableName(name, redact) ?? schemaIsBroken ?? tool.unusable);
    if (why) leftOut.push({ name: shownText(name, redact), why });
    else found.set(name, tool);
    if (found.size > most)
      throw new McpResponseError(`it offers more than ${most} tools; use allowedTools to select some`);
  }
  const byName = new Map<string, TurnTool>();
  for (const [name, tool] of named(server.name, [...found.values()])) {
    // Names collide only if the server wants them to, but a model's provider would then refuse all tools.
    if (byName.has(name))
      leftOut.push({ name: shownText(tool.name, redact), why: trustedText`has the same name as another` });
    else byName.set(name, turnTool(server, name, tool, redact));
  }
  const tools = [...byName.values()];
  const bytes = tools.reduce((sum, tool) => sum + Buffer.byteLength(tool.description) + sizeOf(tool.inputSchema), 0);
  if (bytes > MAX_OFFERED_BYTES)
    throw new McpResponseError(
      `the descriptions and schemas of the tools have more than ${MAX_OFFERED_BYTES} bytes; use allowedTools to select some`,
    );
  const names = read.map(({ name }) => name);
  const { unsafe, harmless } = unknownNames(server, new Set(names));
  for (const name of harmless)
    leftOut.push({ name: shownText(name, redact), why: trustedText`is not a tool of the server` });
  if (unsafe.length > 0) {
    const problem = trustedText`The agent’s approval names tools that the server does not have: ${quoted(unsafe, redact)}. It has: ${quoted(names, redact)}.`;
    return { tools, leftOut, problem };
  }
  const offered = tools.filter(({ remoteName = '' }) => server.allowedTools?.includes(remoteName) ?? true);
  return { tools, leftOut, problem: await ruleProblem(organizationId, server, offered, redact) };
}

/**
 * Why a rule of an approval does not fit the input of its tool. A rule for all tools may be about what only some of them have, but each
 * of its parts must fit one of them.
 */
async function ruleProblem(
  organizationId: string,
  { approval }: McpTool,
  tools: readonly TurnTool[],
  redact: Redact,
): Promise<Redacted | undefined> {
  const isOfAll = approval !== undefined && isSinglePolicy(approval);
  const ruled = tools.flatMap(({ remoteName = '', inputSchema, approval: policy }) =>
    typeof policy === 'object' ? [{ remoteName, fit: { inputSchema, rule: policy.when, isForeign: !isOfAll } }] : [],
  );
  const found = await fitProblems(
    organizationId,
    ruled.map(({ fit }) => fit),
  );
  const misfits = found.flatMap((problems, index) =>
    problems.map((problem) => ({ ...problem, tool: ruled[index]!.remoteName })),
  );
  const isInAll = (path: string) => found.every((problems) => problems.some((one) => one.path === path));
  const counting = isOfAll ? misfits.filter(({ path }) => isInAll(path)) : misfits;
  const shown = counting.find(({ message }) => message.includes('Did you mean')) ?? counting[0];
  if (!shown) return undefined;
  const text = shownText(`${shown.path} ${shown.message}`.trim(), redact).slice(0, MAX_PROBLEM_CHARACTERS);
  const [tool, what] = [quoted([shown.tool], redact), text.toWellFormed() as Redacted];
  return isOfAll
    ? trustedText`The agent’s approval fits none of the server’s tools. For ${tool}: ${what}`
    : trustedText`The agent’s approval of ${tool} does not fit the tool: ${what}`;
}

/**
 * Names in the agent that the server does not list: typos, or tools that were removed or renamed. If a name is to need approval, the
 * tool that was meant might run without one, because the server says that it only reads, or with the approval of anyone.
 */
function unknownNames({ allowedTools = [], approval }: McpTool, listed: ReadonlySet<string>) {
  const policies = approval === undefined || isSinglePolicy(approval) ? [] : Object.entries(approval);
  const needing = policies.filter(([, policy]) => policy !== 'never').map(([name]) => name);
  const unknown = new Set([...allowedTools, ...policies.map(([name]) => name)].filter((name) => !listed.has(name)));
  return {
    unsafe: needing.filter((name) => unknown.has(name)),
    harmless: [...unknown].filter((name) => !needing.includes(name)),
  };
}

function quoted(names: readonly string[], redact: Redact): Redacted {
  if (names.length === 0) return trustedText`no tools`;
  const some = names.slice(0, MAX_QUOTED).map((name) => {
    const shown = shownText(name, redact).slice(0, NAME_MAX_CHARACTERS).toWellFormed();
    return JSON.stringify(shown) as Redacted;
  });
  const list = some.reduce((before, name) => trustedText`${before}, ${name}`);
  return names.length > MAX_QUOTED ? trustedText`${list} and ${names.length - MAX_QUOTED} more` : list;
}

interface RemoteTool {
  name: string;
  description: string;
  inputSchema: Record<string, unknown>;
  readOnly: boolean;
  idempotent: boolean;
  unusable?: Redacted;
}

/** Undefined if it is not a tool at all. */
function readTool(item: unknown): RemoteTool | undefined {
  if (!isObject(item) || typeof item.name !== 'string') return undefined;
  const { name, title, description, inputSchema, annotations, execution } = item;
  const hints = isObject(annotations) ? annotations : {};
  const text = [description, title, hints.title].find((one) => typeof one === 'string' && one !== '');
  return {
    name,
    description: typeof text === 'string' ? text : '',
    inputSchema: isObject(inputSchema) ? fromDraft04(inputSchema) : {},
    readOnly: hints.readOnlyHint === true,
    idempotent: hints.idempotentHint === true,
    ...(isObject(execution) &&
      execution.taskSupport === 'required' && {
        unusable: trustedText`can only be called as a task, which is not supported`,
      }),
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Each tool with the problem of its schema, if there is one. */
async function* judged(
  organizationId: string,
  tools: readonly RemoteTool[],
  redact: Redact,
): AsyncGenerator<[RemoteTool, Redacted | undefined]> {
  for (let from = 0; from < tools.length; from += JUDGED_TOGETHER) {
    const group = tools.slice(from, from + JUDGED_TOGETHER);
    const schemas = group.map(({ inputSchema }) => ({ schema: inputSchema, strictness: 'foreign' as const }));
    const problems = await schemaProblems(organizationId, schemas);
    for (const [index, tool] of group.entries()) {
      const wrong = isOfObject(tool.inputSchema) ? problems[index]![0]?.message : NOT_OF_OBJECT;
      yield [tool, wrong ? trustedText`has an input schema that ${shownText(wrong, redact)}` : undefined];
    }
  }
}

function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

function unusableName(name: string, redact: Redact): Redacted | undefined {
  if (name === '' || name.length > REMOTE_NAME_MAX_CHARACTERS) return trustedText`has a name that is empty or too long`;
  if (/[\p{Cc}\p{Cs}]/u.test(name)) return trustedText`has a name with control characters`;
  return redact(name) === name ? undefined : trustedText`has a name that contains a secret`;
}

/**
 * Each tool with its name for the model: `<server>__<tool>`, with `_` for characters that are not allowed. If that is too long, or
 * the name of another tool as well, it ends in a digest of the server's own name, so a name never depends on the order of the list.
 */
function named(server: string, tools: readonly RemoteTool[]): [string, RemoteTool][] {
  const plain = tools.map(({ name }) => `${server}__${name.replace(/[^A-Za-z0-9_-]/g, '_')}`);
  const uses = new Map<string, number>();
  for (const name of plain) uses.set(name, (uses.get(name) ?? 0) + 1);
  return tools.map((tool, index) => {
    const name = plain[index] ?? '';
    const isItsOwn = name === `${server}__${tool.name}` || uses.get(name) === 1;
    if (isItsOwn && name.length <= NAME_MAX_CHARACTERS) return [name, tool];
    const digest = createHash('sha256').update(tool.name).digest('hex').slice(0, DIGEST_CHARACTERS);
    return [`${name.slice(0, NAME_MAX_CHARACTERS - DIGEST_CHARACTERS - 1)}_${digest}`, tool];
  });
}

function turnTool(server: McpTool, name: string, tool: RemoteTool, redact: Redact): TurnTool {
  const description = shownText(tool.description, redact);
  return {
    name,
    description:
      description.length > DESCRIPTION_MAX_CHARACTERS
        ? `${description.slice(0, DESCRIPTION_MAX_CHARACTERS - 1).toWellFormed()}…`
        : description,
    inputSchema: shownJson(tool.inputSchema, redact) as Record<string, unknown>,
    ...approvalOf(toolApproval(server, tool)),
    repeatable: tool.readOnly || tool.idempotent,
    runsAs: 'here',
    source: server,
    remoteName: tool.name,
  };
}

function toolApproval({ approval }: McpTool, { name, readOnly }: RemoteTool): ToolApproval {
  const standard = readOnly ? 'never' : 'always';
  if (approval === undefined) return standard;
  if (isSinglePolicy(approval)) return approval;
  return (Object.hasOwn(approval, name) ? approval[name] : undefined) ?? standard;
}
