// Every operation of the API is called by a command, against a real service.
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { createReceiver } from '../../server/test/support/receiver.ts';
import { startTestService, type TestService, watchSecret } from '../../server/test/support/service.ts';
import { nouns } from '../src/commands.ts';
import { type CliOptions, type Result, runCli } from './support/cli.ts';

interface OpenApi {
  paths: Record<string, Record<string, { operationId: string; security: Record<string, string[]>[] }>>;
}
const openapi = JSON.parse(readFileSync(new URL('../../../openapi.json', import.meta.url), 'utf8')) as OpenApi;
// The path `/schedules/preview` is not that of a schedule.
const paths = Object.entries(openapi.paths).sort(([one], [other]) => one.split('{').length - other.split('{').length);
const operations = paths.flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { operationId, security }]) => ({
    operationId,
    scopes: security.find(({ apiKey }) => apiKey)?.apiKey ?? [],
    matches: new RegExp(`^${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
  })),
);

const person = 'only for a person who is signed in to the console; on the host, `signalbox users` does it';
const program = 'the protocol between the service and a worker program: `client.workers.run` speaks it';
const operator = 'only for the operator’s token; on the host, `signalbox organizations`, `keys` and `users` do it';
const notCalledHere: Record<string, string> = {
  streamEnvironment: '`signalbox listen` runs until Ctrl-C, and is tested in listen.test.ts',
  listMembers: person,
  updateMember: person,
  removeMember: person,
  resetPassword: person,
  listInvitations: person,
  createInvitation: person,
  deleteInvitation: person,
  updateOrganization: person,
  listOrganizations: operator,
  createOrganization: operator,
  createOrganizationKey: operator,
  createSetupLink: operator,
  claimWorkerTurn: program,
  heartbeatWorkerTurn: program,
  appendToWorkerTurn: program,
  completeWorkerTurn: program,
  releaseWorkerTurn: program,
};

let service: TestService;
let directory: string;
const called = new Set<string>();
beforeAll(async () => {
  service = await startTestService();
  directory = mkdtempSync(join(tmpdir(), 'signalbox-cli-'));
  const { fetch } = globalThis;
  vi.spyOn(globalThis, 'fetch').mockImplementation((target, init) => {
    const request = new Request(target, { method: init?.method ?? 'GET' });
    const { pathname } = new URL(request.url);
    const operation = operations.find(({ matches }) => matches.test(`${request.method} ${pathname}`));
    if (operation) called.add(operation.operationId);
    return fetch(target, init);
  });
});
afterAll(() => rmSync(directory, { recursive: true }));

function run(...argv: string[]): Promise<Result> {
  return runWith({}, ...argv);
}

function runWith(options: CliOptions, ...argv: string[]): Promise<Result> {
  const env = { SIGNALBOX_API_KEY: service.adminKey, SIGNALBOX_URL: service.url, ...options.env };
  return runCli(argv, { ...options, env });
}

/** The text that a successful command prints. */
async function ok(...argv: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(...argv);
  expect([code, stderr], `${argv.join(' ')}\n${stderr}`).toEqual([0, expect.not.stringContaining('signalbox: ')]);
  return stdout.trimEnd();
}

const status = async (sessionId: string) => JSON.parse(await ok('sessions', 'get', sessionId, '--json')).status;

function definition(name: string, script: object[], tools: object[] = []): string {
  const path = join(directory, `${name}.json`);
  writeFileSync(
    path,
    JSON.stringify({ name, model: { provider: 'scripted', model: 'x', settings: { script } }, tools }),
  );
  return path;
}

const refund = {
  type: 'client',
  name: 'refund',
  description: 'Refunds.',
  effectful: true,
  inputSchema: { type: 'object' },
};

test('agents are created from a file, changed, compared and archived; a stale file is refused', async () => {
  const agentId = await ok(
    'agents',
    'create',
    definition('Greeter', [{ text: 'Hello.' }]),
    '--instructions',
    'Be kind.\nBe brief.',
  );
  expect(agentId).toMatch(/^agt_\w+$/);
  expect(await ok('agents', 'list')).toMatch(new RegExp(`^AGENT +NAME +MODEL .*\n${agentId}  Greeter  scripted/x`));
  const edited = join(directory, 'edited.json');
  const found = JSON.parse(await ok('agents', 'get', agentId, '--json'));
  writeFileSync(edited, JSON.stringify({ ...found, instructions: 'Be kind.\nBe thorough.' }));
  expect(await ok('agents', 'update', agentId, edited)).toBe(`${agentId} is now at version 2`);
  const stale = await run('agents', 'update', agentId, edited);
  expect([stale.code, stale.stderr]).toEqual([1, expect.stringContaining('409 conflict')]);
  expect(await ok('agents', 'diff', agentId)).toBe('instructions\n  Be kind.\n- Be brief.\n+ Be thorough.');
  expect(await ok('agents', 'versions', agentId, '-q')).toBe('2\n1');
  expect(await ok('agents', 'get', agentId, '--version', '1')).toContain('Be brief.');
  expect(await ok('agents', 'archive', agentId)).toBe(`archived: ${agentId}`);
  expect(await ok('agents', 'list', '--archived', '-q')).toBe(agentId);
  const wrong = await runWith({ stdin: '{"name": 1, "modle": "x"}' }, 'agents', 'create', '-');
  expect(wrong.code).toBe(1);
  expect(wrong.stderr).toMatch(/400 invalid_request.*modle.*\(req_\w+\)/s);
  expect(await runWith({ stdin: '{' }, 'agents', 'create', '-')).toMatchObject({ code: 1, stdout: '' });
  expect((await run('agents', 'create')).code).toBe(2);
});

test('models are listed, an http tool is tested, and the tools of an MCP server are listed', async () => {
  expect(await ok('agents', 'models', 'scripted', '--environment', 'staging')).toMatch(/^MODEL.*\nscripted/);
  // A server by its short name: its own address, and the usual name of its key.
  const groq = await run('agents', 'models', 'groq', '--environment', 'staging');
  expect([groq.code, groq.stderr]).toEqual([1, expect.stringContaining('GROQ_API_KEY')]);
  const keyless = await run('agents', 'models', 'openai', '--environment', 'staging');
  expect([keyless.code, keyless.stderr]).toEqual([1, expect.stringContaining('has no secret OPENAI_API_KEY')]);

  const request = { url: `${service.url}/healthz?q={{input.q}}` };
  const look = { type: 'http', name: 'look', description: '', inputSchema: { type: 'object' }, request };
  const file = definition(
    'Tester',
    [{ text: 'Hi.' }],
    [
      { ...look, request: { ...request, method: 'GET' } },
      { ...look, name: 'change', request: { ...request, method: 'POST' } },
      { type: 'mcp', name: 'crm', url: `${service.url}/mcp` },
    ],
  );
  const agentId = await ok('agents', 'create', file);
  const here = ['--environment', 'staging'];
  const shown = await ok('agents', 'test-tool', agentId, 'look', ...here, '--input', '{"q":"a b"}');
  expect(shown).toMatch(/GET http.*\/healthz\?q=a%20b.*HTTP 200/s);
  expect(await ok('agents', 'test-tool', file, 'look', ...here, '--input', '{"q":1}')).toContain('HTTP 200');
  const refused = await run('agents', 'test-tool', agentId, 'change', ...here);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('--yes')]);
  const sent = await run('agents', 'test-tool', agentId, 'change', ...here, '--yes', '--input', '{"q":1}');
  expect([sent.code, sent.stdout]).toEqual([1, expect.stringMatching(/HTTP 4\d\d/)]);
  expect((await run('agents', 'test-tool', agentId, 'crm', ...here)).stderr).toContain('no http tool');
  const servers = await run('agents', 'mcp-tools', agentId, 'crm', ...here);
  expect([servers.code, servers.stderr]).toEqual([1, expect.stringContaining('404')]);
});

test('a definition is tried without saving it, its tools mocked, and the draft is read and run again', async () => {
  const script = [{ toolCalls: [{ name: 'refund', input: { cents: 17 } }] }, { text: 'Got {{lastToolResult}}.' }];
  const file = definition('Tried', script, [refund]);
  const tried = ['agents', 'try', file, '--environment', 'staging', '--input', 'Refund it', '--mock'];
  const shown = await ok(...tried, 'refund={"cents":16}');
  expect(shown).toMatch(/Got \{"cents":16\}\./);
  expect(shown).toContain('The session has ended.');
  expect(await ok('agents', 'list', '-q')).not.toContain('Tried');
  const sessionId = await ok(...tried, 'refund="done"', '--no-watch');
  await expect.poll(() => status(sessionId)).toBe('completed');
  expect(await ok('sessions', 'get', sessionId)).toContain('a draft');
  expect(await ok('sessions', 'list', '--drafts', 'only', '-q')).toContain(sessionId);
  expect(await ok('sessions', 'list', '--drafts', 'none', '-q')).not.toContain(sessionId);
  const draft = join(directory, 'draft.json');
  writeFileSync(draft, await ok('sessions', 'draft', sessionId));
  expect(JSON.parse(readFileSync(draft, 'utf8')).mocks).toEqual({ refund: { results: [{ output: 'done' }] } });
  expect(await ok('sessions', 'fork', sessionId, '--draft', draft)).toContain('after turn 1');
  const wrong = await run(...tried, 'refund=done');
  expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('is not JSON')]);
  expect((await run(...tried, 'refund')).code).toBe(2);
});

test('a session that is opened and watched prints its id first, and the command ends when the session is idle', async () => {
  const agentId = await ok('agents', 'create', definition('Idle', [{ text: 'Done.' }]));
  const open = ['sessions', 'open', agentId, '--environment', 'staging', '--watch'];
  const [sessionId = '', ...shown] = (await ok(...open, '--input', 'Hi')).split('\n');
  expect(sessionId).toMatch(/^ses_\w+$/);
  const end = `The session is idle. To continue: signalbox sessions chat ${sessionId}`;
  expect([shown[1], shown.at(-1)]).toEqual(['Done.', end]);
  expect(await status(sessionId)).toBe('idle');
  expect(await ok('sessions', 'watch', sessionId, '--until-idle')).toMatch(
    /^-- running\nDone\.\n[\s\S]*The session is idle\./,
  );
  // A session without a message has nothing to show.
  expect(await ok(...open)).toMatch(/^(ses_\w+)\nThe session is idle\. To continue: signalbox sessions chat \1$/);
  const lines = (await ok(...open, '--input', 'Hi', '--json')).split('\n').map((line) => JSON.parse(line));
  expect([lines[0].agentId, lines.at(-1)]).toMatchObject([agentId, { type: 'session.status', status: 'idle' }]);
});

test('a session is opened, followed, continued, decided, forked, read and deleted', async () => {
  const script = [{ text: 'I ask.', toolCalls: [{ name: 'refund', input: { cents: 17 } }] }, { text: 'Done.' }];
  const agentId = await ok('agents', 'create', definition('Refunds', script, [refund]));
  const { stdout: id } = await runWith(
    { stdin: 'Order 1042, please.\n' },
    'sessions',
    'open',
    agentId,
    '--environment',
    'staging',
    '--input',
    '-',
    '--metadata',
    '{"customer":"17"}',
    '--end-user',
    'u1',
    '--max-steps',
    '9',
  );
  const sessionId = id.trim();
  await expect.poll(() => status(sessionId)).toBe('waiting');
  expect(await ok('sessions', 'list', '--metadata', 'customer=17', '--end-user', 'u1', '-q')).toBe(sessionId);
  const operationId = await ok('approvals', 'list', '--session-id', sessionId, '-q');
  expect(await ok('approvals', 'get', operationId)).toContain('input {"cents":17}');
  expect(await ok('approvals', 'approve', operationId, '--reason', 'fine')).toBe(`approved: refund in ${sessionId}`);
  const waiting = async () => JSON.parse(await ok('sessions', 'get', sessionId, '--json')).waitingFor?.toolCallIds[0];
  await expect.poll(waiting).toBeDefined();
  expect((await run('sessions', 'send-result', sessionId, operationId)).code).toBe(2);
  await ok('sessions', 'send-result', sessionId, await waiting(), '--output', '{"ok":true}');
  await expect.poll(() => status(sessionId)).toBe('idle');
  expect(await ok('sessions', 'messages', sessionId)).toMatch(
    /^user .*\n {2}Order 1042, please\.\nassistant .*\n {2}I ask\.\n {2}-> refund .*\ntool .*\n {2}<- .*ok.*\nassistant .*\n {2}Done\.$/s,
  );
  expect(await ok('sessions', 'turns', sessionId)).toMatch(
    /TURN +STATUS .*\n +1 +completed +endTurn +2 scripted\/x, refund /,
  );
  const [turn] = (await ok('sessions', 'turns', sessionId, '--json')).split('\n').map((line) => JSON.parse(line));
  const calls = Object.fromEntries(
    turn.operations.map((one: { kind: string; operationId: string }) => [one.kind, one.operationId]),
  );
  expect(await ok('sessions', 'operation', sessionId, calls.tool)).toMatch(/^Call +tool refund\nStatus +succeeded\n/);
  expect(await ok('sessions', 'operation', sessionId, calls.model)).toMatch(
    /\nuser\nOrder 1042, please\..*\nResponse\nDone\.$/s,
  );
  const completed = (await ok('sessions', 'chunks', sessionId, '--types', 'turn.completed')).split('\n');
  expect(completed.map((line) => JSON.parse(line).type)).toEqual(['turn.completed']);
  await ok('sessions', 'update', sessionId, '--metadata', '{"customer":"18"}');
  expect(await ok('sessions', 'get', sessionId)).toContain('{"customer":"18"}');
  watchSecret(await ok('sessions', 'create-token', sessionId, '--scopes', 'read,send'));
  const shareLink = await ok('sessions', 'share', sessionId, '--title', 'Order 1042', '--include-tools');
  watchSecret(new URL(shareLink).hash.slice(1));
  expect(await ok('sessions', 'shares', sessionId)).toMatch(/SHARE +TITLE +TOOLS .*\nshr_\w+ +Order 1042 +shown /);
  const shareId = await ok('sessions', 'shares', sessionId, '-q');
  expect(await ok('sessions', 'unshare', sessionId, shareId)).toBe(`revoked: ${shareId}`);
  const fork = JSON.parse(await ok('sessions', 'fork', sessionId, '--json')).sessionId;
  expect(await ok('sessions', 'list', '--forked-from', sessionId, '-q')).toBe(fork);
  await ok('sessions', 'send', fork, 'And again?');
  await expect.poll(() => status(fork)).toBe('waiting');
  await ok('sessions', 'close', fork);
  await ok('sessions', 'cancel', fork);
  expect(await ok('sessions', 'watch', fork, '--all')).toMatch(/I ask\..*-- cancelled\nThe session has ended\.$/s);
  await ok('sessions', 'delete', fork);
  expect((await run('sessions', 'get', fork)).stderr).toContain('404 not_found');
  const compacting = await run('sessions', 'compact', sessionId);
  expect([0, 1]).toContain(compacting.code);
  await ok('sessions', 'interrupt', sessionId);
  expect((await run('sessions', 'retry', sessionId)).stderr).toContain('turn_not_failed');
  await ok('sessions', 'cancel', sessionId);
  const deny = await ok('sessions', 'open', agentId, '--environment', 'staging', '--input', 'x');
  await expect.poll(() => status(deny)).toBe('waiting');
  await ok('approvals', 'deny', await ok('approvals', 'list', '--session-id', deny, '-q'));
  expect(await ok('approvals', 'list', '--session-id', deny, '--status', 'denied', '--json')).toContain('"denied"');
  const several = await Promise.all(
    ['y', 'z'].map((text) => ok('sessions', 'open', agentId, '--environment', 'staging', '--input', text)),
  );
  const pending = await Promise.all(
    several.map(async (id) => {
      await expect.poll(() => status(id)).toBe('waiting');
      return ok('approvals', 'list', '--session-id', id, '-q');
    }),
  );
  expect(await ok('approvals', 'list', '--session-id', several[0]!, '--context')).toMatch(
    /\n {2}user: y\n {2}assistant: I ask\.$/,
  );
  const [first = '', second = ''] = pending;
  expect(await ok('approvals', 'deny', ...pending)).toBe(`${first}  denied\n${second}  denied`);
  const late = await run('approvals', 'approve', ...pending, '--json');
  expect([late.code, late.stdout.match(/"approval_already_resolved"/g)?.length]).toEqual([1, 2]);
  expect((await run('approvals', 'approve', ...pending, '--input', '{}')).code).toBe(2);
});

test('limits for models are set by option, listed with what they allow, and removed', async () => {
  await ok('environments', 'create', 'limited', '--model-limit', '*=60');
  expect(await ok('environments', 'list')).toMatch(/limited .*\*: 60 requests a minute/);
  const update = ['environments', 'update', 'limited', '--model-limit'];
  const several = [...update, 'openai-compatible/a=b:8b=1,200000', '--model-limit', '*=,50000'];
  expect(await ok(...several)).toContain(
    '*: 50000 tokens a minute, openai-compatible/a=b:8b: 1 request and 200000 tokens a minute',
  );
  for (const wrong of ['60', '*=', '*=,', '*=60,', '=60', '*=-5', '*=1.5', '*=60,x', '*=60 requests']) {
    const { code, stderr } = await run(...update, wrong);
    if (wrong === '*=60,') expect(code).toBe(0);
    else expect([wrong, code, stderr]).toEqual([wrong, 2, expect.stringContaining('--model-limit must be such as')]);
  }
  expect((await run(...update, '*=0')).stderr).toContain('modelLimits[0].requestsPerMinute');
  expect((await run('environments', 'update', 'limited')).stderr).toContain(
    '--keep-sessions-days, --model-limit, or both',
  );
  expect(await ok(...update, 'none')).toContain('limits of models: none');
  await ok('environments', 'delete', 'limited');
});

test('a secret comes from standard input, and no command takes it as an option', async () => {
  const value = `sk-${'x'.repeat(20)}`;
  watchSecret(value);
  await ok('environments', 'create', 'preview', '--keep-sessions-days', '7');
  expect(await ok('environments', 'update', 'preview', '--keep-sessions-days', 'none')).toContain(
    'as the operator has set',
  );
  const set = ['secrets', 'set', 'preview', 'SHOP_KEY', '--allowed-host', 'shop.example.com'];
  const stored = await runWith({ stdin: `${value}\n` }, ...set);
  expect(stored).toEqual({ code: 0, stdout: 'set: SHOP_KEY, version 1\n', stderr: '' });
  const again = await runWith({ stdin: `${value}\n` }, ...set, '--new');
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('is taken by another secret')]);
  expect(await ok('secrets', 'list', 'preview')).toMatch(/SHOP_KEY +shop\.example\.com +1 /);
  await ok('secrets', 'delete', 'preview', 'SHOP_KEY');
  await ok('environments', 'delete', 'preview');
  expect(await ok('environments', 'list', '-q')).not.toContain('preview');
  for (const { load } of nouns)
    for (const { options = {} } of await load())
      for (const name of Object.keys(options)) expect(name).not.toMatch(/^(value|secret|password|token|api-key|key)$/);
});

test('webhooks are subscribed, tested, paused, rotated and recovered, and deliveries resent', async () => {
  const secretFile = join(directory, 'webhook-secret');
  await ok('webhooks', 'set', 'staging', 'signalbox:test-receiver', '--secret-file', secretFile);
  expect(statSync(secretFile).mode & 0o777).toBe(0o600);
  watchSecret(readFileSync(secretFile, 'utf8').trim());
  expect(await ok('webhooks', 'test', 'staging')).toMatch(/^attempt 1 at \S+: accepted with 2\d\d /);
  expect(await ok('webhooks', 'set', 'staging', '--types', 'turn.completed,session.status')).toContain(
    'turn.completed',
  );
  const agentId = await ok('agents', 'create', definition('Sender', [{ text: 'Sent.' }]));
  const sessionId = await ok('sessions', 'open', agentId, '--environment', 'staging', '--input', 'x');
  const deliveries = () => ok('deliveries', 'list', 'staging', '--session', sessionId, '--status', 'succeeded', '-q');
  await expect.poll(deliveries).toMatch(/\w/);
  const [deliveryId = ''] = (await deliveries()).split('\n');
  expect(await ok('deliveries', 'get', 'staging', deliveryId)).toMatch(/Attempts +attempt 1 .*accepted.*\nBody +\{/s);
  await ok('deliveries', 'resend', 'staging', deliveryId);
  expect(await ok('webhooks', 'received', 'staging')).toContain('valid');
  expect(await ok('webhooks', 'pause', 'staging')).toBe('staging is paused');
  expect(await ok('webhooks', 'resume', 'staging')).toBe('staging is enabled');
  expect(await ok('webhooks', 'get', 'staging')).toMatch(/Health +healthy/);
  expect(await ok('webhooks', 'list')).toMatch(/staging +enabled +healthy +signalbox:test-receiver/);
  await ok('webhooks', 'recover', 'staging', '--since', '1h');
  expect((await run('webhooks', 'recover', 'staging')).code).toBe(2);
  watchSecret(await ok('webhooks', 'rotate-secret', 'staging', '--grace-seconds', '0'));
  await ok('webhooks', 'delete', 'staging');
  expect((await run('webhooks', 'set', 'staging')).code).toBe(2);
});

test('destinations are created, tested, changed, paused, rotated and recovered, and show what they sent', async () => {
  const receiver = await createReceiver();
  onTestFinished(() => receiver.close());
  const secretFile = join(directory, 'destination-secret');
  const key = 'Bearer 47110815';
  watchSecret(key);
  const env = {
    SIGNALBOX_API_KEY: service.adminKey,
    SIGNALBOX_URL: service.url,
    AUDIT_KEY: key,
  };
  const create = ['destinations', 'create', 'Audit', receiver.url, '--secret-file', secretFile];
  expect((await run(...create)).stderr).toContain('--events');
  expect((await run(...create, '--events', 'agent.*', '--header', 'Authorization=MISSING')).code).toBe(2);
  const created = await runWith({ env }, ...create, '--events', 'agent.*', '--header', 'Authorization=AUDIT_KEY');
  expect([created.code, created.stderr]).toEqual([0, expect.stringMatching(/^Created dst_\w+\.\n/)]);
  const [id = ''] = /dst_\w+/.exec(created.stderr) ?? [];
  watchSecret(readFileSync(secretFile, 'utf8').trim());
  await ok('agents', 'create', definition('Audited', [{ text: 'x' }]));
  await receiver.first(1);
  expect(receiver.received[0]!.headers.authorization).toBe(key);

  expect(await ok('destinations', 'test', id)).toMatch(/accepted with 200/);
  expect(await ok('destinations', 'list')).toMatch(/dst_\w+ +Audit +enabled +healthy +agent\.\*/);
  const sent = () => ok('destinations', 'deliveries', id, '--status', 'succeeded', '-q');
  await expect.poll(sent).toMatch(/\w/);
  expect(await ok('destinations', 'delivery', id, await sent())).toMatch(/About +agent agt_.*accepted.*Body +\{/s);
  expect(await ok('destinations', 'update', id, '--name', 'All', '--events', '*')).toMatch(/Receives +\*/);
  expect(await ok('destinations', 'pause', id)).toBe(`${id} is paused`);
  expect(await ok('destinations', 'resume', id)).toBe(`${id} is enabled`);
  expect(await ok('destinations', 'get', id)).toMatch(/Headers +authorization/);
  await ok('destinations', 'recover', id, '--since', '1h');
  expect((await run('destinations', 'recover', id)).code).toBe(2);
  watchSecret(await ok('destinations', 'rotate-secret', id, '--grace-seconds', '0'));
  expect(await ok('destinations', 'delete', id)).toBe(`deleted: ${id}`);
});

test('keys are created via the API, limited, rotated and revoked', async () => {
  const create = [
    'keys',
    'create',
    '--api',
    '--name',
    'Support',
    '--scopes',
    'sessions:read',
    '--expires-at',
    '90d',
    '--json',
  ];
  const { keyId, secret } = JSON.parse(await ok(...create));
  watchSecret(secret);
  const whoami = await runWith({ env: { SIGNALBOX_API_KEY: secret } }, 'whoami');
  expect(whoami.stdout).toMatch(/^Organization {2}\S.*\nKey {11}key_\w+\nName {10}Support\nCan {11}sessions:read/);
  const refused = await runWith({ env: { SIGNALBOX_API_KEY: secret } }, 'agents', 'list');
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/403 insufficient_permission.*\(req_\w+\)\n.*signalbox whoami/s);
  expect(await ok('keys', 'list')).toMatch(new RegExp(`${keyId}  Support +sessions:read`));
  expect(await ok('keys', 'update', keyId, '--requests-per-minute', '600')).toMatch(/Requests per minute +600/);
  expect(await ok('keys', 'update', keyId, '--unlimited')).not.toContain('Requests per minute');
  watchSecret(await ok('keys', 'rotate', keyId, '--grace-seconds', '60'));
  expect(await ok('keys', 'get', keyId)).toContain('works until');
  await ok('keys', 'end-grace', keyId);
  await ok('keys', 'delete', keyId);
  const revoked = await runWith({ env: { SIGNALBOX_API_KEY: secret } }, 'whoami');
  expect([revoked.code, revoked.stderr]).toEqual([1, expect.stringContaining('Check SIGNALBOX_API_KEY')]);
});

test('schedules, files, end users, usage, events and the organization are within reach', async () => {
  const agentId = await ok('agents', 'create', definition('Reporter', [{ text: 'Report.' }]));
  const create = [
    'schedules',
    'create',
    agentId,
    '--environment',
    'staging',
    '--cron',
    '0 9 * * 1-5',
    '--input',
    'Go.',
  ];
  const scheduleId = await ok(...create);
  expect(await ok('schedules', 'get', scheduleId)).toMatch(/Times +0 9 \* \* 1-5 UTC/);
  expect(await ok('schedules', 'update', scheduleId, '--at', '2h')).toMatch(/Times +2\S+Z\n/);
  expect(await ok('schedules', 'update', scheduleId, '--cron', '0 8 * * *')).toMatch(/Times +0 8 \* \* \* UTC\n/);
  expect(await ok('schedules', 'pause', scheduleId)).toContain('paused');
  expect(await ok('schedules', 'list', '--agent', agentId, '--status', 'paused', '-q')).toBe(scheduleId);
  const started = await ok('schedules', 'run', scheduleId);
  expect(started).toMatch(/^ses_/);
  const until = (status: string, sessionId: string) =>
    expect.poll(async () => (await service.client.sessions.get(sessionId)).status).toBe(status);
  await until('completed', started);
  expect(await ok('schedules', 'runs', scheduleId)).toMatch(new RegExp(`opened, manual +${started} +completed`));
  const broken = await ok('agents', 'create', definition('Broken', [{ failWith: 'rejected' }]));
  await ok('schedules', 'update', scheduleId, '--agent', broken);
  await until('failed', await ok('schedules', 'run', scheduleId));
  expect(await ok('schedules', 'runs', scheduleId)).toMatch(/opened, manual +ses_\w+ +failed: \w+/);
  expect(await ok('schedules', 'runs', scheduleId, '--failed')).not.toContain(started);
  expect(await ok('schedules', 'get', scheduleId)).toMatch(/Failed runs +1 of the newest 10/);
  expect(await ok('schedules', 'list')).toMatch(/FAILED RUNS.*\n.*paused +1 /);
  expect(await ok('overview')).toMatch(/Schedules +0 failing/);
  expect((await ok('schedules', 'preview', '0 9 * * *', '--limit', '2')).split('\n')).toHaveLength(2);
  expect(await ok('schedules', 'update', scheduleId, '--name', 'Nightly')).toMatch(/Name +Nightly/);
  await ok('schedules', 'delete', scheduleId);

  const path = join(directory, 'note.txt');
  writeFileSync(path, 'Hello.');
  const fileId = await ok('files', 'upload', path, '--environment', 'staging');
  expect(await ok('files', 'list', '-q')).toBe(fileId);
  expect(await ok('files', 'get', fileId)).toContain('note.txt');
  await ok('files', 'download', fileId, '--output', join(directory, 'copy.txt'));
  expect(readFileSync(join(directory, 'copy.txt'), 'utf8')).toBe('Hello.');
  await ok('files', 'delete', fileId);

  const token = [
    'end-users',
    'create-token',
    'u2',
    '--agent',
    agentId,
    '--environment',
    'staging',
    '--scopes',
    'open,read',
  ];
  watchSecret(await ok(...token));
  expect(await ok('end-users', 'get', 'u2')).toContain('u2 has no sessions');
  await ok('end-users', 'erase', 'u2');

  expect(await ok('overview')).toMatch(/Pending approvals +\d/);
  expect(await ok('usage', '--group-by', 'model', '--from', '2d')).toMatch(/^MODEL +INPUT .*\nscripted\/x .*\ntotal /s);
  // Without the days on which nothing ran. The test may run across midnight.
  expect(await ok('usage')).toMatch(/^DAY +INPUT .*\n(\d{4}-\d\d-\d\d .*\n){1,2}total .*$/);
  expect(await ok('analytics', '--step', 'day')).toMatch(/^DAY +SESSIONS .*\n\d{4}-\d\d-\d\d .*total /s);
  expect(await ok('budgets', 'set', 'monthly', '--limit', '500', '--threshold', '90')).toMatch(/^set: monthly, /);
  const again = await run('budgets', 'set', 'monthly', '--limit', '1', '--new');
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('is taken by another budget')]);
  expect(await ok('budgets', 'list')).toMatch(/^BUDGET +OF .*\nmonthly +everything +month /s);
  expect(await ok('budgets', 'delete', 'monthly')).toBe('deleted: monthly');
  expect(await ok('usage', '--csv')).toMatch(/^day,name,inputTokens,.*\r\n\d{4}-\d\d-\d\d,,/);
  expect(await ok('organization', 'set-origins', 'https://app.example.com')).toContain('https://app.example.com');
  expect(await ok('organization', 'set-origins')).toMatch(/Origins +none/);
  expect(await ok('organization', 'get')).toMatch(/^Organization +org_/);

  const listed = await ok('events', 'list', '--type', 'schedule.deleted', '--since', '1h', '--json');
  const { eventId } = JSON.parse(listed);
  expect(await ok('events', 'get', eventId)).toContain(scheduleId);
  const exported = await ok('events', 'export');
  expect(exported.split('\n').length).toBeGreaterThan(20);
  const verified = await runWith({ stdin: `${exported}\n` }, 'events', 'verify', '--file', '-');
  expect(verified).toMatchObject({ code: 0, stdout: expect.stringContaining('The log is intact') });
  expect(await ok('events', 'export', '--format', 'csv')).toMatch(/^sequence,/);
});

test('sessions are searched, counted, exported, and cancelled and closed by the same filters', async () => {
  const { agentId } = await service.client.agents.create({ name: 'Many', model: 'scripted/echo' });
  const open = (id: string) =>
    service.client.sessions.open({
      agentId,
      environment: 'production',
      endUser: { id },
      input: '=Where is the teapot?',
    });
  const ids = [(await open('many-1')).sessionId, (await open('many-2')).sessionId];
  for (const id of ids) await expect.poll(() => status(id)).toBe('idle');
  await expect.poll(() => ok('sessions', 'list', '--search', 'TEAPOT', '-q')).toBe(ids.toReversed().join('\n'));
  expect(await ok('sessions', 'list', '--search', 'teapot', '--oldest', '--since', '1h', '-q')).toBe(ids.join('\n'));
  expect(await ok('sessions', 'list', '--agent', agentId, '--failed', '-q')).toBe('');
  expect(await ok('sessions', 'list', '--search', ids[0]!.slice(0, -1), '--end-user', 'many-1', '-q')).toBe(ids[0]);
  expect(await ok('sessions', 'count', '--agent', agentId)).toBe('2');
  const csv = (await ok('sessions', 'export', '--format', 'csv', '--agent', agentId)).split('\r\n');
  expect(csv).toHaveLength(3);
  expect(csv[1]).toContain(",'=Where is the teapot?,");
  expect(JSON.parse((await ok('sessions', 'export', '--end-user', 'many-2')).trim())).toMatchObject({
    sessionId: ids[1],
  });
  expect((await run('sessions', 'cancel-many')).code).toBe(2);
  expect(await ok('sessions', 'close-many', '--end-user', 'many-1')).toBe(`${ids[0]} is completed`);
  expect(await ok('sessions', 'cancel-many', '--agent', agentId)).toBe(`${ids[1]} is cancelled`);
  expect(await ok('sessions', 'cancel-many', '--agent', agentId)).toBe('');
});

test('every operation was called by a command above, except for those with a reason', () => {
  const missing = operations.map(({ operationId }) => operationId).filter((id) => !called.has(id));
  expect(missing.sort()).toEqual(Object.keys(notCalledHere).sort());
});

test('every command names the scopes of its operations, which its help and the reference show', async () => {
  for (const noun of nouns) {
    for (const command of await noun.load()) {
      const name = `${noun.name} ${command.name}`;
      const scopes = operations.filter(({ operationId }) => command.operations?.includes(operationId as never));
      expect(scopes.map(({ operationId }) => operationId).sort(), name).toEqual([...(command.operations ?? [])].sort());
      // Without a key in the environment: on the host, and with the one that is typed.
      if (['keys create', 'login '].includes(name)) continue;
      // The operation needs it only for a draft.
      const ofDraft = name === 'agents try' ? ['agents:write'] : [];
      const wanted = [...new Set([...scopes.flatMap((operation) => operation.scopes), ...ofDraft])].sort();
      expect(command.needs && [...command.needs].sort(), name).toEqual(command.operations ? wanted : undefined);
    }
  }
});
