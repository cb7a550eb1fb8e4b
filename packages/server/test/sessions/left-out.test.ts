// Leaving out of a session what a provider refuses: a retry names it, and no later call has it.
import { Readable } from 'node:stream';
import { Signalbox } from '@signalbox/client';
import type { Chunk, LeftOut, Message } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listEvents } from '../../src/events/events.ts';
import { systemSource } from '../../src/events/record.ts';
import { createFile } from '../../src/files/create.ts';
import { getOperation } from '../../src/inspect/get-operation.ts';
import { formatId, newUuid, uuidOf } from '../../src/lib/ids.ts';
import { type AskModel, type ModelCall, ModelFailure } from '../../src/models/model/model.ts';
import { createModels } from '../../src/models/models.ts';
import { compactSession } from '../../src/sessions/compact.ts';
import { forkSession } from '../../src/sessions/forks.ts';
import { listMessages, sendMessage } from '../../src/sessions/messages.ts';
import { listTurns } from '../../src/sessions/reading/timeline.ts';
import { retrySession } from '../../src/sessions/retry.ts';
import { getSession } from '../../src/sessions/sessions.ts';
import { turnToolOf } from '../../src/tools/tool/turn-tool.ts';
import { anthropicMessages } from '../support/anthropic-wire.ts';
import { png } from '../support/files.ts';
import { generateContent } from '../support/google-wire.ts';
import { chatCompletions } from '../support/openai-server.ts';
import { type ResponsePart, refuse, startProviderServer } from '../support/provider-server.ts';
import { responses } from '../support/responses-wire.ts';
import { startTestService } from '../support/service.ts';
import { answering, createWorld, httpTool, type ScriptedResponse, type World } from '../support/session-world.ts';

let world: World;
let calls: ModelCall[];
beforeEach(async () => {
  world = await createWorld();
  calls = [];
});
afterEach(() => world.close());

const is =
  (status: string, count = 1) =>
  (_: Chunk, all: Chunk[]) =>
    all.filter((chunk) => chunk.type === 'session.status' && chunk.status === status).length >= count;
const sessionOf = async (sessionId: string) => (await getSession(world.ctx, { sessionId })).session;
const messagesOf = async (sessionId: string): Promise<Message[]> =>
  (await listMessages(world.ctx, { sessionId, order: 'asc', limit: 100 })).data;

const POISON = 'POISON';
const pay = httpTool('pay', { effectful: true });
const look = httpTool('look');
const refusal = () => new ModelFailure('model_rejected', 'The provider refused it.', { retryable: false });

/** Refuses each request that has the poison, or for which `refuses` says so, as a provider does. */
function strict(responses: ScriptedResponse[], refuses: (call: ModelCall) => boolean = () => false): AskModel {
  const inner = answering(responses, (call) => calls.push(call));
  return async function* (call, signal) {
    const withoutContents = call.transcript.map(({ content }) => content);
    if (JSON.stringify(withoutContents).includes(POISON) || refuses(call)) {
      calls.push(structuredClone(call));
      throw refusal();
    }
    yield* inner(call, signal);
  };
}

const textsIn = ({ transcript }: ModelCall) =>
  transcript.map(({ role, content }) => [
    role,
    content.map((part) => (part.type === 'text' ? part.text : part.type)).join('|'),
  ]);

test('a conversation continues without the message that its provider refuses, in this turn and in later ones', async () => {
  await world.work({ ask: strict([{ text: 'ok' }]) });
  const sessionId = await world.open(await world.agent(), { input: POISON });
  await world.until(sessionId, is('idle'));
  await sendMessage(world.ctx, { sessionId, content: 'Hello?' });
  await world.until(sessionId, is('idle', 2));
  expect(await sessionOf(sessionId)).toMatchObject({ stopReason: 'error', leftOut: null });

  const [first] = await messagesOf(sessionId);
  const without = { messageIds: [first!.messageId] };
  const { session } = await retrySession(world.ctx, { sessionId, without });
  const leftOut = { fileIds: [], messageIds: [first!.messageId], tools: [], refusedFiles: [] };
  expect(session).toMatchObject({ status: 'running', leftOut });
  await world.until(sessionId, is('idle', 3));
  await sendMessage(world.ctx, { sessionId, content: 'And now?' });
  await world.until(sessionId, is('idle', 4));
  expect(await sessionOf(sessionId)).toMatchObject({ stopReason: 'endTurn', leftOut });
  expect(textsIn(calls.at(-1)!)).toEqual([
    ['user', '(A message is left out here.)'],
    ['user', 'Hello?'],
    ['assistant', 'ok'],
    ['user', 'And now?'],
  ]);
  // The transcript keeps it.
  expect((await messagesOf(sessionId))[0]).toMatchObject({ content: [{ type: 'text', text: POISON }] });
  const events = await listEvents(world.ctx, { sessionId, type: 'session.retried' });
  expect(events.data).toMatchObject([{ changes: { leftOut: [null, leftOut] } }]);
});

test.each([
  ['a response', 'assistant'],
  ['the results of a response', 'tool'],
] as const)('%s is left out together with what belongs to it, and no call runs again', async (_, role) => {
  const runs: string[] = [];
  await world.work({
    ask: strict([{ text: 'Paying', calls: [['pay', { note: 1 }]] }, { text: 'Done' }]),
    run: async ({ operationId }) => {
      runs.push(operationId);
      return { output: POISON };
    },
  });
  const sessionId = await world.open(await world.agent([pay]));
  await world.until(sessionId, is('idle'));
  const named = (await messagesOf(sessionId)).find((message) => message.role === role)!;
  await retrySession(world.ctx, { sessionId, without: { messageIds: [named.messageId] } });
  await world.until(sessionId, is('idle', 2));
  expect(await sessionOf(sessionId)).toMatchObject({ stopReason: 'endTurn' });
  expect(textsIn(calls.at(-1)!)).toEqual([
    ['user', 'go'],
    ['user', '(A response is left out here. It called pay: do not repeat that on your own.)'],
    ['user', '(The results of these calls are left out as well.)'],
  ]);
  expect(runs).toHaveLength(1);
  // The places of later messages are their own.
  expect((await messagesOf(sessionId)).map((message) => message.role)).toEqual([
    'user',
    'assistant',
    'tool',
    'assistant',
  ]);

  // A call is shown as it was sent, also after something was left out.
  const { data } = await listTurns(world.ctx, { sessionId });
  const models = data[0]!.operations.filter(({ kind }) => kind === 'model');
  const prompts = await Promise.all(
    models.map(async ({ operationId }) => (await getOperation(world.ctx, { sessionId, operationId })).operation.prompt),
  );
  expect(prompts.map((prompt) => prompt!.messages)).toEqual(
    calls.map(({ transcript }) => transcript.map(({ role, content }) => ({ role, content }))),
  );
});

test('a tool that is left out is not offered, and a call of it gets an error that says so', async () => {
  const crm = { type: 'mcp' as const, name: 'crm', url: 'https://example.com/mcp' };
  const offered = (name: string, source: object) =>
    ({ ...turnToolOf(look as never), name, source: { ...crm, ...source } }) as never;
  const offers = (name: string) => (call: ModelCall) => call.tools.some((tool) => tool.name === name);
  const ask = strict(
    [{}, {}, { calls: [['pay', {}]] }, { text: 'ok' }],
    (call) => offers('pay')(call) || offers('crm__find')(call),
  );
  const tools = [
    turnToolOf(pay as never),
    turnToolOf(look as never),
    offered('crm__find', {}),
    offered('crm__add', {}),
  ];
  await world.work({ ask, list: async () => ({ tools, unavailable: [] }) });
  const sessionId = await world.open(await world.agent([pay, look, crm]));
  await world.until(sessionId, is('idle'));
  await retrySession(world.ctx, { sessionId, without: { tools: ['pay'] } });
  await world.until(sessionId, is('idle', 2));
  await retrySession(world.ctx, { sessionId, without: { tools: ['crm__find', 'pay'] } });
  const chunks = await world.until(sessionId, is('idle', 3));
  expect(chunks.filter(({ type }) => type === 'tool.result')).toMatchObject([
    { error: 'The tool "pay" is left out of this session.' },
  ]);
  expect(calls.at(-1)!.tools.map(({ name }) => name)).toEqual(['look', 'crm__add']);
  expect(await sessionOf(sessionId)).toMatchObject({
    stopReason: 'endTurn',
    leftOut: { tools: ['pay', 'crm__find'] },
  });

  // The name of an MCP server is for all of its tools.
  const other = await world.open(await world.agent([pay, look, crm]));
  await world.until(other, is('idle'));
  await retrySession(world.ctx, { sessionId: other, without: { tools: ['pay', 'crm'] } });
  await world.until(other, is('idle', 2));
  expect(calls.at(-1)!.tools.map(({ name }) => name)).toEqual(['look']);
});

test('a file that is left out is described, also where it is named again, and in forks', async () => {
  const upload = () =>
    createFile(
      world.platform,
      systemSource(world.organizationId),
      { environment: 'production', sessionId: newUuid(), filename: 'a.png', mediaType: undefined },
      Readable.from([Buffer.concat([png, Buffer.from(newUuid())])]),
    );
  const [bad, good] = [await upload(), await upload()];
  const isSent = (call: ModelCall) =>
    !call.withoutFiles?.includes(bad.fileId) && JSON.stringify(call.transcript).includes(bad.fileId);
  await world.work({ ask: strict([{ text: 'ok' }], isSent) });
  const input = [bad, good].map(({ fileId }) => ({ type: 'file' as const, fileId }));
  const agentId = await world.agent([], { model: 'anthropic/claude-sonnet-4-5' });
  const sessionId = await world.open(agentId, { input });
  await world.until(sessionId, is('idle'));
  await retrySession(world.ctx, { sessionId, without: { fileIds: [bad.fileId] } });
  await world.until(sessionId, is('idle', 2));
  await sendMessage(world.ctx, { sessionId, content: [{ type: 'file', fileId: bad.fileId }] });
  await world.until(sessionId, is('idle', 3));
  expect(await sessionOf(sessionId)).toMatchObject({ stopReason: 'endTurn', leftOut: { fileIds: [bad.fileId] } });

  const { session: fork } = await forkSession(world.ctx, { sessionId, atTurn: 1, input: 'Go on' });
  await world.until(fork.sessionId, is('idle'));
  expect(await sessionOf(fork.sessionId)).toMatchObject({
    stopReason: 'endTurn',
    leftOut: { fileIds: [bad.fileId], messageIds: [], tools: [] },
  });
  expect(calls.at(-1)!.withoutFiles).toEqual([bad.fileId]);
});

test('a file that a provider refuses is left out by itself for that model, in later turns and in forks', async () => {
  const isImage = ({ text }: { text: string }) => text.includes('"type":"image"');
  const server = await startProviderServer('/v1', (response, request) =>
    (isImage(request)
      ? refuse(400, { body: anthropicMessages.error(400, 'messages.0.content.1.image.source: over 8000 pixels') })
      : anthropicMessages.respond({ parts: [{ text: ['ok'] }] }))(response, request as never),
  );
  const file = await createFile(
    world.platform,
    systemSource(world.organizationId),
    { environment: 'production', sessionId: newUuid(), filename: 'a.png', mediaType: undefined },
    Readable.from([png]),
  );
  await world.work({ ask: createModels(world.platform) });
  const agentId = await world.agent([], {
    model: { provider: 'anthropic', model: 'claude-sonnet-4-5', baseUrl: server.url },
  });
  const sessionId = await world.open(agentId, { input: [{ type: 'file', fileId: file.fileId }] });
  await world.until(sessionId, is('idle'));
  await sendMessage(world.ctx, { sessionId, content: 'And now?' });
  await world.until(sessionId, is('idle', 2));
  const refusedFiles = [{ fileId: file.fileId, model: 'anthropic/claude-sonnet-4-5' }];
  const expected = { stopReason: 'endTurn', leftOut: { fileIds: [], messageIds: [], tools: [], refusedFiles } };
  expect(await sessionOf(sessionId)).toMatchObject(expected);
  const { session: fork } = await forkSession(world.ctx, { sessionId, input: 'Go on' });
  await world.until(fork.sessionId, is('idle'));
  expect(await sessionOf(fork.sessionId)).toMatchObject(expected);
  // It is sent once.
  expect(server.requests.map(isImage)).toEqual([true, false, false, false]);

  // A call is shown as it was accepted.
  const { data } = await listTurns(world.ctx, { sessionId });
  for (const { operations } of data) {
    const { operationId } = operations[0]!;
    const { operation } = await getOperation(world.ctx, { sessionId, operationId });
    expect(JSON.stringify(operation.request)).toContain('not shown: the provider of its model refused it');
  }
  await server.close();
});

/** The paths of the elements of lists that have the poison, from the outermost to the innermost. */
function pathsTo(value: unknown, path: (string | number)[] = []): (string | number)[][] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    if (!JSON.stringify(inner).includes(POISON)) return [];
    const at = [...path, Array.isArray(value) ? Number(name) : name];
    return [...(Array.isArray(value) ? [at] : []), ...pathsTo(inner, at)];
  });
}
const bracketed = (path: (string | number)[]) =>
  path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`))
    .join('')
    .slice(1);
const invalid = { type: 'invalid_request_error', code: null };

test.each([
  {
    provider: 'anthropic',
    model: 'claude-sonnet-4-5',
    wire: anthropicMessages,
    errorAt: (path: (string | number)[]) => anthropicMessages.error(400, `${path.join('.')}: Input is not allowed`),
  },
  {
    provider: 'openai',
    model: 'gpt-5',
    wire: responses,
    errorAt: (path: (string | number)[]) => ({
      error: { ...invalid, message: 'x', param: bracketed(path.slice(0, 2)) },
    }),
  },
  {
    provider: 'google',
    model: 'gemini-3-pro-preview',
    wire: generateContent,
    errorAt: (path: (string | number)[]) =>
      generateContent.error(400, `* GenerateContentRequest.${bracketed(path)}.data: required oneof field 'data'`),
  },
  {
    provider: 'openai-compatible',
    model: 'small',
    wire: chatCompletions,
    errorAt: (path: (string | number)[]) => ({
      error: { ...invalid, message: 'x', param: bracketed(path.slice(0, 2)) },
    }),
  },
] as const)(
  'the error of a turn names the message that $provider refuses, and the turn continues without it',
  async (row) => {
    const { provider, model, wire, errorAt } = row;
    const replies: ResponsePart[][] = [[{ text: ['Hello'] }], [{ call: 'look', input: {} }]];
    const server = await startProviderServer(wire.basePath, (response, request) => {
      const path = pathsTo(request.body).at(-1);
      const reply = path
        ? refuse(400, { body: errorAt(path) })
        : wire.respond({ parts: replies.shift() ?? [{ text: ['ok'] }] });
      return reply(response, request as never);
    });
    await world.work({ ask: createModels(world.platform), run: async () => ({ output: POISON }) });
    const agentId = await world.agent([look], { model: { provider, model, baseUrl: server.url } as never });
    const sessionId = await world.open(agentId, { input: 'Hi' });
    await world.until(sessionId, is('idle'));
    await sendMessage(world.ctx, { sessionId, content: 'Look' });
    const chunks = await world.until(sessionId, is('idle', 2));
    const results = (await messagesOf(sessionId)).find(({ role }) => role === 'tool')!;
    const retryWithout = { messageIds: [results.messageId] };
    const message = expect.stringContaining(`: it is about the message ${results.messageId}; the turn can be retried`);
    expect(chunks.findLast(({ type }) => type === 'turn.completed')).toMatchObject({
      error: { message, retryWithout },
    });
    expect((await listTurns(world.ctx, { sessionId })).data[0]).toMatchObject({ error: { retryWithout } });

    // Read again from what is stored, and joined with the message after it.
    await sendMessage(world.ctx, { sessionId, content: 'And now?' });
    await world.until(sessionId, is('idle', 3));
    const { error } = await sessionOf(sessionId);
    expect(error).toMatchObject({ retryWithout });
    await retrySession(world.ctx, { sessionId, without: error!.retryWithout! });
    await world.until(sessionId, is('idle', 4));
    expect(await sessionOf(sessionId)).toMatchObject({ stopReason: 'endTurn', error: null, leftOut: retryWithout });
    await server.close();
  },
);

test('the error of a turn names the tool that a provider refuses, and the turn continues without it', async () => {
  const server = await startProviderServer('/v1', (response, request) => {
    const at = (request.body.tools as { name: string }[] | undefined)?.findIndex(({ name }) => name === 'pay') ?? -1;
    const error = anthropicMessages.error(400, `tools.${at}.custom.input_schema: JSON schema is invalid.`);
    const reply = at >= 0 ? refuse(400, { body: error }) : anthropicMessages.respond({ parts: [{ text: ['ok'] }] });
    return reply(response, request as never);
  });
  await world.work({ ask: createModels(world.platform) });
  const config = { provider: 'anthropic', model: 'claude-sonnet-4-5', baseUrl: server.url };
  const sessionId = await world.open(await world.agent([look, pay], { model: config as never }));
  await world.until(sessionId, is('idle'));
  const { error } = await sessionOf(sessionId);
  expect(error).toMatchObject({ retryWithout: { tools: ['pay'] } });
  await retrySession(world.ctx, { sessionId, without: error!.retryWithout! });
  await world.until(sessionId, is('idle', 2));
  expect(await sessionOf(sessionId)).toMatchObject({ stopReason: 'endTurn', leftOut: { tools: ['pay'] } });
  await server.close();
});

test('an error names no message that is left out already, and none at a place of another request', async () => {
  const errors: unknown[] = [
    anthropicMessages.error(400, 'messages.0: roles must alternate'),
    // An error about what a gateway has made of the request.
    {
      error: {
        message: 'Provider returned error',
        metadata: { raw: JSON.stringify(anthropicMessages.error(400, 'messages.0: x')) },
      },
    },
    anthropicMessages.error(400, 'messages: too many'),
    anthropicMessages.error(400, 'messages.9.content: x'),
    anthropicMessages.error(400, 'system.0: x'),
  ];
  const server = await startProviderServer('/v1', (response) =>
    refuse(400, { body: errors[0] })(response, null as never),
  );
  await world.work({ ask: createModels(world.platform) });
  const config = { provider: 'anthropic', model: 'claude-sonnet-4-5', baseUrl: server.url };
  const sessionId = await world.open(await world.agent([], { model: config as never }), { input: 'Hi' });
  await world.until(sessionId, is('idle'));
  const [first] = await messagesOf(sessionId);
  const named: unknown[] = [(await sessionOf(sessionId)).error!.retryWithout];
  await retrySession(world.ctx, { sessionId, without: { messageIds: [first!.messageId] } });
  await world.until(sessionId, is('idle', 2));
  named.push((await sessionOf(sessionId)).error!.retryWithout);
  for (let times = 3; errors.length > 1; times++) {
    errors.shift();
    await sendMessage(world.ctx, { sessionId, content: 'Hi' });
    await world.until(sessionId, is('idle', times));
    named.push((await sessionOf(sessionId)).error!.retryWithout);
  }
  expect(named).toEqual([{ messageIds: [first!.messageId] }, ...Array(5).fill(undefined)]);
  await server.close();
});

test('an end user continues without the message that is refused, and leaves nothing else out', async () => {
  const service = await startTestService();
  const { client } = service;
  const server = await startProviderServer('/v1', (response, { text, body }) => {
    const error = { error: { ...invalid, message: 'x', param: 'messages[0].content' } };
    const reply = text.includes(POISON)
      ? refuse(400, { body: error })
      : chatCompletions.respond({ parts: [{ text: ['ok'] }] });
    return reply(response, { body } as never);
  });
  const model = { provider: 'openai-compatible' as const, model: 'small', baseUrl: server.url };
  const { agentId } = await client.agents.create({ name: 'Clerk', model });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production', input: POISON });
  await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('idle');
  const [{ messageId }] = (await client.sessions.messages(sessionId)).data as [Message];
  const { token } = await client.sessions.createToken(sessionId, { scopes: ['read', 'send'] });
  const asUser = new Signalbox({ baseUrl: service.url, token: () => token! });
  const { error } = await asUser.sessions.get(sessionId);
  expect(error).toEqual({
    code: 'model_rejected',
    message: 'The turn failed.',
    retryWithout: { messageIds: [messageId] },
  });

  for (const without of [{ tools: ['pay'] }, { messageIds: [messageId, formatId('msg', newUuid())] }])
    await expect(asUser.sessions.retry(sessionId, { without })).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('a session token can leave out nothing else'),
    });
  await asUser.sessions.retry(sessionId, { without: error!.retryWithout! });
  await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('idle');
  expect(await client.sessions.get(sessionId)).toMatchObject({
    stopReason: 'endTurn',
    leftOut: { messageIds: [messageId] },
  });
  await server.close();
});

test('a session with a message that is left out is compacted, also if that is its first', async () => {
  await world.work({ ask: strict([{ text: 'ok' }]) });
  const sessionId = await world.open(await world.agent(), { input: POISON });
  await world.until(sessionId, is('idle'));
  const [first] = await messagesOf(sessionId);
  await retrySession(world.ctx, { sessionId, without: { messageIds: [first!.messageId] } });
  await world.until(sessionId, is('idle', 2));
  await sendMessage(world.ctx, { sessionId, content: 'More' });
  await world.until(sessionId, is('idle', 3));
  await compactSession(world.ctx, { sessionId });
  await world.until(sessionId, is('idle', 4));
  await sendMessage(world.ctx, { sessionId, content: 'Still there?' });
  await world.until(sessionId, is('idle', 5));
  expect(await sessionOf(sessionId)).toMatchObject({ stopReason: 'endTurn' });
  const [pinned, ...rest] = textsIn(calls.at(-1)!);
  expect(pinned).toEqual([
    'user',
    expect.stringMatching(/^\(A message is left out here\.\)\|.*summary:\n\nok\|Still there\?$/),
  ]);
  expect(rest).toEqual([]);
});

test('what the conversation or the agent does not have is named in the refusal, and nothing is left out', async () => {
  await world.work({ ask: strict([{ text: 'ok' }]) });
  const agentId = await world.agent([pay]);
  const [sessionId, stranger] = await Promise.all([
    world.open(agentId, { input: POISON }),
    world.open(agentId, { input: 'Hi' }),
  ]);
  await Promise.all([world.until(sessionId, is('idle')), world.until(stranger, is('idle'))]);
  const [[own], [others]] = await Promise.all([messagesOf(sessionId), messagesOf(stranger)]);
  const fileId = formatId('file', newUuid());
  const wrong: [Partial<LeftOut>, string[]][] = [
    [{ messageIds: [own!.messageId, others!.messageId] }, ['without.messageIds[1]']],
    [{ fileIds: [fileId], tools: ['pay', 'crm'] }, ['without.fileIds[0]', 'without.tools[1]']],
    [{ messageIds: [own!.messageId], tools: ['pay__all'] }, ['without.tools[0]']],
  ];
  for (const [without, paths] of wrong) {
    const error = await retrySession(world.ctx, { sessionId, without }).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: 'invalid_request', status: 400 });
    expect(error.errors.map(({ path }: { path: string }) => path)).toEqual(paths);
    for (const { message } of error.errors) expect(message).toMatch(/has no (file|message|tool) "/);
  }
  expect(await sessionOf(sessionId)).toMatchObject({ status: 'idle', stopReason: 'error', leftOut: null });

  // Nothing named is a retry as before, and so is what is left out already.
  await retrySession(world.ctx, { sessionId, without: { fileIds: [] } });
  await world.until(sessionId, is('idle', 2));
  expect(await sessionOf(sessionId)).toMatchObject({ stopReason: 'error', leftOut: null });
  for (const times of [3, 4]) {
    await retrySession(world.ctx, { sessionId, without: { tools: ['pay'] } });
    await world.until(sessionId, is('idle', times));
  }
  const [row] = await world.platform.db.query<{ leftOut: unknown[] }>(sql`
    select left_out as "leftOut" from sessions
    where organization_id = ${world.organizationId} and session_id = ${uuidOf('ses', sessionId)}`);
  expect(row!.leftOut).toHaveLength(1);
});

test('the client names what is left out, once for each key, and a session token can’t', async () => {
  const service = await startTestService();
  const { client } = service;
  const { agentId } = await client.agents.create({
    name: 'Fails once',
    model: { provider: 'scripted', model: 'x', settings: { script: [{ failWith: 'rejected' }, { text: 'ok' }] } },
  });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production', input: 'Hi' });
  const isIdle = () => client.sessions.get(sessionId).then(({ status }) => status);
  await expect.poll(isIdle).toBe('idle');
  const [{ messageId }] = (await client.sessions.messages(sessionId)).data as [Message];
  const without = { messageIds: [messageId] };

  const { token } = await client.sessions.createToken(sessionId, { scopes: ['read', 'send'] });
  const refused = await service.fetch(`/api/v1/sessions/${sessionId}/retry`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ without }),
  });
  expect(refused.status).toBe(400);
  const wrong = client.sessions.retry(sessionId, { without: { tools: ['pay'] } });
  await expect(wrong).rejects.toMatchObject({ status: 400, errors: [{ path: 'without.tools[0]' }] });

  const options = { idempotencyKey: 'again' };
  const retried = await client.sessions.retry(sessionId, { without, ...options });
  expect(retried.leftOut).toMatchObject(without);
  expect(await client.sessions.retry(sessionId, { without, ...options })).toEqual(retried);
  await expect.poll(isIdle).toBe('idle');
  expect(await client.sessions.get(sessionId)).toMatchObject({ stopReason: 'endTurn', turn: 1, leftOut: without });
});
