// What authors of agents ask for while they write one: the models of a provider, the tools of an MCP server, and a test of an `http` tool.
//
// All of them send requests with secrets of an environment, as a turn does: through egress/, each secret only to its own hosts, and
// redacted from what comes back. They take what changing an agent takes, because an agent can do the same.
import type { HttpTool, Input, McpTool, Result } from '@signalbox/contract';
import { checkDefinition, refuse } from '../agents/definition.ts';
import { fitErrors } from '../agents/fit-errors.ts';
import { lockEnvironment } from '../environments/environments.ts';
import { recordEvent } from '../events/record.ts';
import { ApiError, invalidField } from '../lib/api-error.ts';
import { inTransaction, type PoolContext } from '../lib/context.ts';
import { formatId, newUuid } from '../lib/ids.ts';
import { inputErrors } from '../schemas/schemas.ts';
import type { StoredResponse } from '../session-rows/operation-trace.ts';
import { createHttpTool } from '../tools/http/http-tool.ts';
import { createMcpTools } from '../tools/mcp/mcp-tools.ts';
import { startDeadline } from '../tools/request/deadline.ts';
import type { SentRequest, ToolOwner } from '../tools/tool/tool.ts';
import { turnToolOf } from '../tools/tool/turn-tool.ts';

/** The limit of all requests of an organization that are under way on this node. */
const MAX_AT_ONCE = 8;
/** The caller waits for it. */
const TEST_MAX_SECONDS = 60;

/** 404 if there is no such environment, 422 `url_not_allowed`, 429 if many requests are under way. */
export async function listModels(ctx: PoolContext, input: Input<'listModels'>): Promise<Result<'listModels'>> {
  const { env, provider, baseUrl, apiKeySecret } = input;
  await requireEnvironment(ctx, env);
  // The name is not asked for: the check of a definition requires one.
  const config = { provider, model: 'any', ...(baseUrl && { baseUrl }), ...(apiKeySecret && { apiKeySecret }) };
  inRequest('', () => checkDefinition({ model: config, tools: [] }, ctx.egress));
  return await oneOfFew(ctx, async () => ({
    modelList: await ctx.modelCatalog.list({ organizationId: ctx.organizationId, environment: env, config }),
  }));
}

/** Recorded before anything is sent. 400 if the input does not match its schema; otherwise as `listModels`. */
export async function testTool(ctx: PoolContext, input: Input<'testTool'>): Promise<Result<'testTool'>> {
  const { env, tool, input: given = {}, endUser = null } = input;
  await requireEnvironment(ctx, env);
  await requireTool(ctx, tool, 'tool');
  const [wrong] = await inputErrors(ctx.organizationId, [{ schema: tool.inputSchema, value: given }]);
  if (wrong !== undefined) throw invalidField('input', wrong);
  return await oneOfFew(ctx, async (signal) => {
    await recordTest(ctx, env, tool);
    let request: SentRequest | null = null;
    let response: StoredResponse | null = null;
    const startedAt = ctx.clock.now().getTime();
    const { output, error, outcomeUnknown } = await createHttpTool(ctx)(
      {
        ...ownerOf(ctx, env),
        endUser,
        tool: turnToolOf({ ...tool, timeoutSeconds: Math.min(tool.timeoutSeconds ?? 30, TEST_MAX_SECONDS) }),
        input: given,
        operationId: formatId('op', newUuid()),
        onRequest: (sent) => {
          request = sent;
        },
        onResponse: (received) => {
          response = received;
        },
      },
      signal,
    ).then((outcome) => ({ output: undefined, error: undefined, outcomeUnknown: undefined, ...outcome }));
    const durationMs = ctx.clock.now().getTime() - startedAt;
    return {
      toolTest: {
        request: request && shownRequest(request),
        response: response && shownResponse(response),
        ...(error === undefined ? { output } : { error }),
        ...(outcomeUnknown && { outcomeUnknown }),
        durationMs,
      },
    };
  });
}

/** As `listModels`. */
export async function listMcpTools(ctx: PoolContext, input: Input<'listMcpTools'>): Promise<Result<'listMcpTools'>> {
  const { env, server } = input;
  await requireEnvironment(ctx, env);
  await requireTool(ctx, server, 'server');
  return await oneOfFew(ctx, async (signal) => {
    const mcp = createMcpTools(ctx);
    try {
      const listing = await mcp.inspect(ownerOf(ctx, env), server, signal);
      if (typeof listing === 'string') return { mcpToolList: { tools: [], leftOut: [], problem: listing } };
      const tools = listing.tools.map(({ name, remoteName = name, description, inputSchema, approval }) => ({
        name: remoteName,
        offeredAs: name,
        description,
        inputSchema,
        needsApproval: approval !== 'never',
      }));
      const leftOut = listing.leftOut.map(({ name, why }) => ({ name, reason: why }));
      return { mcpToolList: { tools, leftOut, problem: listing.problem ?? null } };
    } finally {
      await mcp.close();
    }
  });
}

function ownerOf({ organizationId }: PoolContext, environment: string): ToolOwner {
  return { organizationId, environment, endUser: null };
}

async function requireEnvironment(ctx: PoolContext, env: string): Promise<void> {
  await inTransaction(ctx, (tx, { organizationId }) => lockEnvironment(tx, organizationId, env));
}

/** What saving an agent with this tool would refuse. */
async function requireTool(
  { egress, organizationId }: PoolContext,
  tool: HttpTool | McpTool,
  path: string,
): Promise<void> {
  inRequest(path, () => checkDefinition({ model: { provider: 'scripted', model: 'any' }, tools: [tool] }, egress));
  const errors = await fitErrors(organizationId, [tool], null);
  inRequest(path, () => refuse(errors));
}

/** With the paths of errors as they are in the request. */
function inRequest(path: string, check: () => void): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof ApiError) || !error.errors) throw error;
    const own = (text: string) => text.replace(/^tools\[0\]/, path).replace(/^model\./, '');
    const errors = error.errors.map((one) => ({ ...one, path: own(one.path) }));
    throw new ApiError(error.code, own(error.message), { errors });
  }
}

/** Only the origin: path and query may have personal data. */
async function recordTest(ctx: PoolContext, environment: string, { name, request }: HttpTool): Promise<void> {
  const { origin } = new URL(request.url.replaceAll(/\{\{[^}]*\}\}/g, 'x'));
  await inTransaction(ctx, (tx, ctx) =>
    tx.query(
      recordEvent(ctx, ctx.clock.now(), {
        type: 'agent.tool_tested',
        resource: { type: 'tool', id: name },
        environment,
        changes: { request: [null, `${request.method} ${origin}`] },
      }),
    ),
  );
}

const underWay = new Map<string, number>();

async function oneOfFew<T>(ctx: PoolContext, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { organizationId, clock } = ctx;
  const others = underWay.get(organizationId) ?? 0;
  if (others >= MAX_AT_ONCE) {
    throw new ApiError(
      'rate_limited',
      `The organization has ${MAX_AT_ONCE} tests and lists under way, which is the limit.`,
      {
        retryAfterSeconds: 1,
      },
    );
  }
  underWay.set(organizationId, others + 1);
  const time = startDeadline(clock, TEST_MAX_SECONDS + 5, ...(ctx.signal ? [ctx.signal] : []));
  try {
    return await run(time.signal);
  } finally {
    time.end();
    const left = underWay.get(organizationId)! - 1;
    if (left > 0) underWay.set(organizationId, left);
    else underWay.delete(organizationId);
  }
}

type Shown<K extends 'request' | 'response'> = NonNullable<Result<'testTool'>['toolTest'][K]>;

function shownRequest({ method, url, headers, body }: SentRequest): Shown<'request'> {
  return { method, url, headers: headers.map((one) => [...one]), body };
}

function shownResponse({ status, headers, bytes }: StoredResponse): Shown<'response'> {
  return { status, headers: headers.map((one) => [...one]), bytes };
}
