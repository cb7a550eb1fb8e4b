// Traces of a whole service, as a collector in the test receives them.
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { convertGenAISpanAttributesToOpenInferenceSpanAttributes } from '@arizeai/openinference-genai';
import { providerFacts } from '@signalbox/contract';
import { createApp } from 'autotel-mcp';
import sql from 'sql-template-tag';
import { afterEach, expect, test } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { freePort } from '../support/free-port.ts';
import { contentOf } from '../support/genai-schemas.ts';
import { createManualClock, type ManualClock } from '../support/manual-clock.ts';
import { createReceiver, type Receiver } from '../support/receiver.ts';
import { unknownIn } from '../support/semantic-conventions.ts';
import { startTestService, type TestService, watchSecret } from '../support/service.ts';
import { agentTool, clientTool, httpTool } from '../support/session-world.ts';

interface Span {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  kind: number;
  attributes: Record<string, unknown>;
  status: { code?: number };
}

interface Collector {
  url: string;
  spans: Span[];
  /** All received bodies, unparsed. */
  text: string;
  headers: IncomingHttpHeaders[];
  /** Requests that wait for a response. */
  open: number;
  /** The status of the responses; undefined: none ever. */
  status: number | undefined;
}

const HEADER = 'collector-secret-0123456789';
const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const CALLER = '00f067aa0ba902b7';
const endings: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (let end = endings.pop(); end; end = endings.pop()) await end();
});

async function createCollector(): Promise<Collector> {
  const collector: Collector = { url: '', spans: [], text: '', headers: [], open: 0, status: 200 };
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const text = Buffer.concat(parts).toString();
    collector.headers.push(request.headers);
    collector.open += 1;
    response.once('close', () => {
      collector.open -= 1;
    });
    if (collector.status === undefined) return;
    if (collector.status === 200 && request.url === '/v1/traces') {
      collector.text += text;
      collector.spans.push(...spansIn(text));
    }
    response.writeHead(collector.status, { 'content-type': 'application/json' }).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  collector.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  endings.push(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return collector;
}

type Wire = Omit<Span, 'attributes'> & { attributes: { key: string; value: Record<string, unknown> }[] };

function spansIn(text: string): Span[] {
  const { resourceSpans } = JSON.parse(text) as { resourceSpans: { scopeSpans: { spans: Wire[] }[] }[] };
  return resourceSpans
    .flatMap(({ scopeSpans }) => scopeSpans)
    .flatMap(({ spans }) => spans)
    .map(({ attributes, ...span }) => ({
      ...span,
      attributes: Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]])),
    }));
}

interface Traced {
  service: TestService;
  clock: ManualClock;
  collector: Collector;
  receiver: Receiver;
  /** Stops the service, which sends what is left, and returns all spans, with names as OpenTelemetry publishes them. */
  flushed(): Promise<Span[]>;
}

async function start({ isTraced = true, config = {} as Partial<Config> } = {}): Promise<Traced> {
  watchSecret(HEADER);
  const collector = await createCollector();
  const receiver = await createReceiver();
  endings.push(() => receiver.close());
  const clock = createManualClock();
  const service = await startTestService({
    clock,
    config: isTraced ? { otlpEndpoint: collector.url, otlpHeaders: { 'x-api-key': HEADER }, ...config } : {},
  });
  const stop = () => clock.passWhile(service.stop());
  endings.push(stop);
  return {
    service,
    clock,
    collector,
    receiver,
    async flushed() {
      await stop();
      expect(collector.spans.flatMap(({ attributes }) => unknownIn(attributes))).toEqual([]);
      return collector.spans;
    },
  };
}

const scripted = (script: object[]) =>
  ({ provider: 'scripted', model: 'm', settings: { script } }) as unknown as 'scripted/x';

async function post(service: TestService, path: string, body: object, traceparent?: string): Promise<Response> {
  const response = await service.fetch(`/api/v1${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(traceparent && { traceparent }) },
    body: JSON.stringify(body),
  });
  expect(response.status).toBeLessThan(300);
  return response;
}

async function open(service: TestService, agentId: string, traceparent?: string): Promise<string> {
  const body = { agentId, environment: 'production', input: 'what a person said' };
  const { session } = (await (await post(service, '/sessions', body, traceparent)).json()) as {
    session: { sessionId: string };
  };
  return session.sessionId;
}

async function becomes({ service, clock }: Traced, sessionId: string, status: string, turn = 1): Promise<void> {
  const now = async () => {
    const session = await service.client.sessions.get(sessionId);
    return `${session.turn} ${session.status}`;
  };
  await clock.passUntil(async () => (await now()) === `${turn} ${status}`);
}

const ofText = { type: 'object', properties: { of: { type: 'string' } }, required: ['of'] };
const caller = (flags = '01', traceId = TRACE_ID) => `00-${traceId}-${CALLER}-${flags}`;
const named = (spans: readonly Span[], name: RegExp) => spans.filter((span) => name.test(span.name));

test('one trace spans the request, the turn with its model and tool calls, and the delivery', async () => {
  const traced = await start();
  const { service, clock, collector, receiver } = traced;
  const { client } = service;
  await client.webhookSubscriptions.create({ environment: 'production', url: receiver.url });
  const { agentId } = await client.agents.create({
    name: 'Helper',
    model: scripted([
      { toolCalls: [{ name: 'look', input: { chunks: ['what a model said'] } }] },
      { text: 'the answer' },
    ]),
    tools: [httpTool('look', { request: { method: 'POST', url: receiver.url, body: { chunks: '{{input.chunks}}' } } })],
  });
  const sessionId = await open(service, agentId, caller());
  await becomes(traced, sessionId, 'idle');
  const acknowledged = async () => (await client.webhookSubscriptions.deliveries.list('production')).data;
  await clock.passUntil(async () => (await acknowledged()).some(({ status }) => status === 'succeeded'));
  const spans = (await traced.flushed()).filter(({ traceId }) => traceId === TRACE_ID);

  const [request] = named(spans, /^POST \/api\/v1\/sessions$/);
  expect(request).toMatchObject({ parentSpanId: CALLER, kind: 2 });
  expect(request!.attributes).toMatchObject({ 'http.route': '/api/v1/sessions', 'http.response.status_code': 201 });
  const [turn] = named(spans, /^invoke_agent Helper$/);
  expect(turn!.parentSpanId).toBe(request!.spanId);
  expect(turn!.attributes).toMatchObject({
    'gen_ai.agent.id': agentId,
    'gen_ai.conversation.id': sessionId,
    'signalbox.stop_reason': 'endTurn',
  });
  const models = named(spans, /^chat m$/);
  expect(models.map(({ parentSpanId }) => parentSpanId)).toEqual([turn!.spanId, turn!.spanId]);
  expect(models[0]!.attributes).toMatchObject({ 'gen_ai.provider.name': 'scripted', 'gen_ai.request.model': 'm' });
  expect(Number(models[0]!.attributes['gen_ai.usage.input_tokens'])).toBeGreaterThan(0);
  const [tool] = named(spans, /^execute_tool look$/);
  expect(tool!.parentSpanId).toBe(turn!.spanId);
  expect(tool!.attributes['gen_ai.tool.call.id']).toMatch(/^call_/);
  expect([...models, tool!].map(({ attributes }) => attributes['gen_ai.conversation.id'])).toEqual(
    Array(3).fill(sessionId),
  );
  expect(collector.text).toContain(
    '"gen_ai.response.finish_reasons","value":{"arrayValue":{"values":[{"stringValue":"stop"}]}}',
  );
  const deliveries = named(spans, /^deliver webhook$/);
  expect(deliveries.length).toBeGreaterThan(0);
  expect(deliveries.every(({ parentSpanId }) => parentSpanId === request!.spanId)).toBe(true);
  expect(deliveries[0]!.attributes).toMatchObject({
    'http.response.status_code': 200,
    'gen_ai.conversation.id': sessionId,
  });

  // Content and addresses are not exported.
  for (const word of ['what a person said', 'what a model said', 'the answer', '127.0.0.1', HEADER, service.adminKey]) {
    expect(collector.text).not.toContain(word);
  }
  expect(collector.headers.every((headers) => headers['x-api-key'] === HEADER)).toBe(true);
  // Requests to other servers do not carry the trace.
  expect(receiver.received.every(({ headers }) => !('traceparent' in headers))).toBe(true);
});

test('with content, a collector program stores what people, models and tools said, and Phoenix finds it; no secret is in it', async () => {
  const KEY = 'crm-secret-0123456789';
  watchSecret(KEY);
  const port = await freePort();
  const program = await createApp({ argv: ['--collector-port', `${port}`, '--retention-ms', '1e13'], env: {} });
  await program.start();
  endings.push(() => program.stop());
  const traced = await start({ config: { otlpEndpoint: `http://127.0.0.1:${port}`, otlpContent: true } });
  const { service, receiver } = traced;
  const { client } = service;
  await client.environments.secrets.set('production', 'CRM_KEY', { value: KEY, allowedHosts: ['127.0.0.1'] });
  // The tool's server returns the secret that it was sent.
  receiver.respond = ({ body }) => ({ status: 200, headers: { 'content-type': 'application/json' }, body });
  const sent = { chunks: [], key: '{{secrets.CRM_KEY}}', of: '{{input.of}}' };
  const request = { method: 'POST' as const, url: receiver.url, body: sent };
  const { agentId } = await client.agents.create({
    name: 'Helper',
    instructions: 'Be brief.',
    model: scripted([
      { text: 'Let me look.', toolCalls: [{ name: 'look', input: { of: 'what a model said' } }] },
      { text: 'the answer' },
    ]),
    tools: [httpTool('look', { inputSchema: ofText, request })],
  });
  const sessionId = await open(service, agentId, caller());
  await becomes(traced, sessionId, 'idle');
  await traced.flushed();

  const stored = (await program.backend.getTrace(TRACE_ID))!.spans;
  const names = stored.flatMap(({ tags }) => unknownIn(tags));
  expect(names).toEqual([]);
  const tagsOf = (name: string) => stored.filter((one) => one.operationName === name).map(({ tags }) => tags);
  const [first, second] = tagsOf('chat m').map((tags) => ({ tags, ...contentOf(tags) }));
  const asked = { role: 'user', parts: [{ type: 'text', content: 'what a person said' }] };
  const call = { type: 'tool_call', name: 'look', arguments: { of: 'what a model said' } };
  const said = { role: 'assistant', parts: [{ type: 'text', content: 'Let me look.' }, call] };
  expect(first).toMatchObject({
    tags: { 'gen_ai.conversation.id': sessionId, 'gen_ai.operation.name': 'chat' },
    'gen_ai.system_instructions': [{ type: 'text', content: 'Be brief.' }],
    'gen_ai.tool.definitions': [{ type: 'function', name: 'look' }],
    'gen_ai.input.messages': [asked],
    'gen_ai.output.messages': [{ ...said, finish_reason: 'tool_call' }],
  });
  const [tool] = tagsOf('execute_tool look');
  const id = tool!['gen_ai.tool.call.id'];
  const result = { chunks: [], key: '[secret CRM_KEY]', of: 'what a model said' };
  expect(contentOf(tool!)).toEqual({
    'gen_ai.tool.call.arguments': { of: 'what a model said' },
    'gen_ai.tool.call.result': result,
  });
  expect(second).toMatchObject({
    'gen_ai.input.messages': [
      asked,
      { ...said, parts: [said.parts[0], { ...call, id }] },
      { role: 'tool', parts: [{ type: 'tool_call_response', id, response: result }] },
    ],
    'gen_ai.output.messages': [
      { role: 'assistant', parts: [{ type: 'text', content: 'the answer' }], finish_reason: 'stop' },
    ],
  });
  expect(receiver.received.some(({ body }) => body.includes(KEY))).toBe(true);
  expect(JSON.stringify(stored)).not.toContain(KEY);

  expect(convertGenAISpanAttributesToOpenInferenceSpanAttributes(second!.tags)).toMatchObject({
    'openinference.span.kind': 'LLM',
    'llm.input_messages.0.message.role': 'system',
    'llm.input_messages.1.message.contents.0.message_content.text': 'what a person said',
    'llm.input_messages.2.message.tool_calls.0.tool_call.function.name': 'look',
    'llm.input_messages.3.message.tool_call_id': id,
    'llm.output_messages.0.message.contents.0.message_content.text': 'the answer',
  });
  expect(convertGenAISpanAttributesToOpenInferenceSpanAttributes(tool!)).toMatchObject({
    'openinference.span.kind': 'TOOL',
    'input.value': '{"of":"what a model said"}',
    'output.value': JSON.stringify(result),
  });
});

test('every provider has the name that OpenTelemetry publishes for it, and a misspelt name is found', () => {
  const names = Object.values(providerFacts).map(({ telemetryName }) => telemetryName);
  expect(names.flatMap((name) => unknownIn({ 'gen_ai.provider.name': name }))).toEqual([]);
  for (const [name, value] of [
    ['gen_ai.input.message', '[]'],
    ['gen_ai.usage.cached_tokens', 1],
    ['gen_ai.system', 'openai'],
    ['gen_ai.provider.name', 'google'],
    ['gen_ai.operation.name', 'tool'],
  ] as const)
    expect(unknownIn({ [name]: value })).toHaveLength(1);
});

test('a turn that waited continues its trace, and a queued message keeps its own', async () => {
  const traced = await start();
  const { service } = traced;
  const { agentId } = await service.client.agents.create({
    name: 'Helper',
    model: scripted([{ toolCalls: [{ name: 'ask' }] }, { text: 'first' }, { text: 'second' }]),
    tools: [clientTool('ask')],
  });
  const sessionId = await open(service, agentId, caller());
  await becomes(traced, sessionId, 'waiting');
  const other = 'a'.repeat(32);
  await post(service, `/sessions/${sessionId}/messages`, { content: 'more' }, caller('01', other));
  const chunks = (await service.client.sessions.chunks(sessionId)).data.flatMap((envelope) => envelope.chunks);
  const call = chunks.find(({ type }) => type === 'tool.call') as unknown as { toolCallId: string };
  await post(service, `/sessions/${sessionId}/tool_results`, { toolCallId: call.toolCallId, output: 1 });
  await becomes(traced, sessionId, 'idle', 2);
  const turns = named(await traced.flushed(), /^invoke_agent/).map(
    ({ traceId, attributes }) => `${attributes['signalbox.turn']} ${traceId}`,
  );
  expect(turns.toSorted()).toEqual([`1 ${TRACE_ID}`, `1 ${TRACE_ID}`, `2 ${other}`]);
});

test('the span of a child session’s turn is below the turn that called it', async () => {
  const traced = await start();
  const { client } = traced.service;
  const child = await client.agents.create({ name: 'Child', model: scripted([{ text: 'found' }]) });
  const parent = await client.agents.create({
    name: 'Parent',
    model: scripted([{ toolCalls: [{ name: 'helper', input: { input: 'find' } }] }, { text: 'done' }]),
    tools: [agentTool('helper', child.agentId)],
  });
  await becomes(traced, await open(traced.service, parent.agentId, caller()), 'idle');
  const spans = await traced.flushed();
  const [below] = named(spans, /^invoke_agent Child$/);
  const parents = named(spans, /^invoke_agent Parent$/).map(({ spanId }) => spanId);
  expect(below!.traceId).toBe(TRACE_ID);
  expect(parents).toContain(below!.parentSpanId);
});

test('a caller that does not sample is not traced; without a valid traceparent a new trace starts', async () => {
  const traced = await start();
  const { service } = traced;
  for (const traceparent of [
    caller('00'),
    undefined,
    'nonsense',
    caller().toUpperCase(),
    `00-${'0'.repeat(32)}-${CALLER}-01`,
    `00-${TRACE_ID}-${'0'.repeat(16)}-01`,
    `ff-${TRACE_ID}-${CALLER}-01`,
  ]) {
    await service.fetch('/api/v1/me', { headers: traceparent ? { traceparent } : {} });
  }
  await service.fetch('/healthz');
  const spans = await traced.flushed();
  expect(spans.map(({ name }) => name)).toEqual(Array(6).fill('GET /api/v1/me'));
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(6);
  expect(spans.every(({ traceId, parentSpanId }) => traceId !== TRACE_ID && !parentSpanId)).toBe(true);
});

test('a collector that refuses or never responds harms nothing, is logged once, and does not delay the stop', async () => {
  for (const status of [500, undefined]) {
    const traced = await start();
    const { service, collector } = traced;
    collector.status = status;
    const { agentId } = await service.client.agents.create({ name: 'A', model: scripted([{ text: 'hello' }]) });
    await becomes(traced, await open(service, agentId), 'idle');
    await traced.flushed();
    expect(collector.headers.length).toBeGreaterThan(0);
    // The request to a collector that never responds ends with the service.
    await expect.poll(() => collector.open).toBe(0);
    expect(service.logLines.filter((line) => line.includes('did not stop cleanly'))).toEqual([]);
    const warnings = service.logLines.filter((line) => line.includes('does not accept spans'));
    expect(warnings.length).toBeLessThanOrEqual(1);
  }
});

test('without a collector nothing is traced, and the caller’s trace is not stored', async () => {
  const traced = await start({ isTraced: false });
  const { service } = traced;
  const { agentId } = await service.client.agents.create({ name: 'A', model: scripted([{ text: 'hello' }]) });
  await becomes(traced, await open(service, agentId, caller()), 'idle');
  const rows = await service.db.query<{ traceParent: string | null }>(
    sql`select trace_parent as "traceParent" from sessions where organization_id is not null`,
  );
  expect(rows).toEqual([{ traceParent: null }]);
  expect(await traced.flushed()).toEqual([]);
});
