// The form of an agent in the browser: create one, edit it as fields and as JSON, and try it next to the form.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Agent, CreateAgent } from '@signalbox/client';
import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { startMcpServer } from '../../server/test/support/mcp-server.ts';
import { json, name, save, unfold } from './support/agent-editor.ts';
import { expectAccessible } from './support/axe.ts';
import { textIn, write } from './support/code-editor.ts';
import { type Person, startConsole, type TestConsole } from './support/console.ts';

let console: TestConsole;
let member: Person;
beforeAll(async () => {
  console = await startConsole();
  member = await console.person('member', 'Mara Member');
});

const wide = { viewport: { width: 1440, height: 900 } };
const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };

async function createAgent(more: Partial<CreateAgent> = {}): Promise<Agent> {
  return await console.service.client.agents.create({ name: 'Helper', model: 'scripted/test', ...more });
}
const newest = (agentId: string) => console.service.client.agents.get(agentId);

/** The errors of a field, by its label. */
async function errorOf(page: Page, label: string): Promise<string> {
  const field = page.getByLabel(label, { exact: true }).and(page.locator('[aria-invalid=true]')).first();
  const ids = (await field.getAttribute('aria-describedby')) ?? '';
  const error = ids.split(' ').find((id) => /-(error|problems)$/.test(id));
  return (await page.locator(`[id="${error}"]`).textContent()) ?? '';
}

test('an agent is created from a template through the form, and the event log names its creator', async () => {
  const page = await console.open(member, '/agents', wide);
  await page.getByRole('link', { name: 'New agent' }).click();
  await page.getByRole('link', { name: /^Refund desk/ }).click();
  await name(page).fill('Refunds of Acme');
  await write(page.getByLabel('Instructions', { exact: true }).last(), 'Refund what is broken.');
  await page.getByText('refund_order', { exact: true }).click();
  await page.getByLabel('Require approval').selectOption({ label: 'Once per session: later calls run without asking' });
  await page.getByRole('button', { name: 'Create agent' }).click();
  await page.getByRole('heading', { name: 'Refunds of Acme' }).waitFor();
  const [agent] = (await console.service.client.agents.list()).data;
  expect(agent).toMatchObject({
    name: 'Refunds of Acme',
    instructions: 'Refund what is broken.',
    tools: [{ type: 'client', name: 'refund_order', effectful: true, approval: 'once' }],
  });
  const [event] = (await console.service.client.events.list({ resourceId: agent!.agentId })).data;
  expect(event).toMatchObject({ type: 'agent.created', actor: { type: 'user', name: 'Mara Member' } });
});

test('the form and the JSON stay in sync, and invalid JSON breaks neither', async () => {
  const { agentId } = await createAgent();
  const page = await console.open(member, `/agents/${agentId}?view=json`, wide);
  await unfold(page, 'Limits');
  await name(page).fill('By the form');
  expect(JSON.parse(await textIn(json(page))).name).toBe('By the form');

  const typed = '{ "name": "By the JSON",  "model": "openai/gpt-5", "limits": { "maxStepsPerTurn": 7 } }';
  await write(json(page), typed);
  expect(await name(page).inputValue()).toBe('By the JSON');
  expect(await page.getByLabel('Provider').inputValue()).toBe('openai');
  expect(await page.getByLabel('Max steps per turn').inputValue()).toBe('7');
  // The text is kept as typed.
  expect(await textIn(json(page))).toBe(typed);

  await write(json(page), typed.slice(0, -1));
  await page.getByRole('listitem').filter({ hasText: 'definition is not valid JSON' }).first().waitFor();
  await page.getByText('The form shows the last valid version until you fix it.').waitFor();
  expect(await name(page).isDisabled()).toBe(true);
  await save(page).click();
  expect((await newest(agentId)).version).toBe(1);

  await write(json(page), typed);
  await page.getByLabel('Model', { exact: true }).last().fill('gpt-5-mini');
  expect(JSON.parse(await textIn(json(page))).model).toEqual({ provider: 'openai', model: 'gpt-5-mini' });
  await save(page).click();
  await page.getByText('Version 2 saved').waitFor();
  // A field that the JSON leaves out has its default.
  expect(await newest(agentId)).toMatchObject({
    name: 'By the JSON',
    model: { provider: 'openai', model: 'gpt-5-mini' },
    limits: { maxStepsPerTurn: 7, turnTimeoutSeconds: 600 },
    instructions: '',
  });
});

test('the length of a conversation and the model that summarizes it are fields of the form', async () => {
  const { agentId } = await createAgent();
  const page = await console.open(member, `/agents/${agentId}`, wide);
  await unfold(page, 'Limits');
  await unfold(page, 'Key, settings and context');
  await page.getByLabel('Compact at (tokens)').fill('5');
  expect(await errorOf(page, 'Compact at (tokens)')).toMatch(/^Compact at \(tokens\) must be (at least|>=) 1,?000/);
  await page.getByLabel('Compact at (tokens)').fill('40000');
  await write(page.getByLabel('Model for summaries'), '{ "provider": "worker", "model": "gpt-5-mini" }');
  await page
    .getByText(/^Line 1 provider must be one of/)
    .first()
    .waitFor();
  const compaction = { provider: 'openai', model: 'gpt-5-mini' };
  await write(page.getByLabel('Model for summaries'), JSON.stringify(compaction));
  // It stays if the provider changes.
  await page.getByLabel('Provider').selectOption('anthropic');
  await page.getByLabel('Model', { exact: true }).last().fill('claude-sonnet-4-5');
  await expectAccessible(page);
  await save(page).click();
  await page.getByText('Version 2 saved').waitFor();
  expect(await newest(agentId)).toMatchObject({
    model: { provider: 'anthropic', model: 'claude-sonnet-4-5', compaction },
    limits: { compactAtTokens: 40_000 },
  });
  await page.getByLabel('Compact at (tokens)').fill('');
  await write(page.getByLabel('Model for summaries'), '');
  await save(page).click();
  await page.getByText('Version 3 saved').waitFor();
  const { model, limits } = await newest(agentId);
  expect([model.compaction, limits.compactAtTokens]).toEqual([undefined, null]);
});

test('errors appear at their field with the service’s wording, both before a request and from the service’s response', async () => {
  const page = await console.open(member, '/agents/new?template=empty', wide);
  const sent: string[] = [];
  page.on('request', (request) => {
    if (request.method() === 'POST') sent.push(request.url());
  });
  await page.getByRole('button', { name: 'Create agent' }).click();
  expect(await errorOf(page, 'Name')).toBe('Name must not be empty.');
  await name(page).and(page.locator(':focus')).waitFor();
  await name(page).fill('Local');
  await unfold(page, 'Key, settings and context');
  await write(page.getByLabel('Settings', { exact: true }), '{ "temperature": 7, "color": "red" }');
  await page.getByText(/^Line 1 color is not a known field/).waitFor();
  await page
    .getByRole('listitem')
    .filter({ hasText: 'Model › settings › temperature must be at most 2' })
    .first()
    .waitFor();
  await write(page.getByLabel('Settings', { exact: true }), '');
  await page.getByRole('button', { name: 'Add Client tool' }).click();
  await page.getByLabel('Name', { exact: true }).last().fill('2 words');
  expect(await errorOf(page, 'Name')).toMatch(/^Name must be 1 to 64 letters/);
  expect(sent).toEqual([]);

  // Only the service checks this.
  await page.getByLabel('Name', { exact: true }).last().fill('look_up');
  await page.getByRole('button', { name: 'Add Client tool' }).click();
  await page.getByLabel('Name', { exact: true }).last().fill('look_up');
  await page.getByLabel('Provider').selectOption('openai-compatible');
  await page.getByLabel('Model', { exact: true }).last().fill('llama3.2');
  await page.getByRole('button', { name: 'Create agent' }).click();
  await page.getByText(/^Request req_/).waitFor();
  expect(sent).toHaveLength(1);
  expect(await errorOf(page, 'Base URL')).toBe('Base URL is required for openai-compatible, up to and including /v1.');
  expect(await errorOf(page, 'Name')).toBe('"look_up" is already the name of another tool.');
  // A cloud has no server that could be chosen, but an address in a form of its own.
  await page.getByLabel('Provider').selectOption('azure');
  await page.getByText('https://RESOURCE.openai.azure.com/openai/v1').waitFor();
  expect(await page.getByLabel('Server', { exact: true }).count()).toBe(0);
  await page.getByLabel('Model', { exact: true }).last().fill('prod-chat');
  await page.getByLabel('Base URL').fill('https://acme.openai.azure.com/v1');
  await page.getByRole('button', { name: 'Create agent' }).click();
  expect(await errorOf(page, 'Base URL')).toBe('Base URL must be like https://RESOURCE.openai.azure.com/openai/v1.');
  await page.getByLabel('Provider').selectOption('openai-compatible');
  // A server of the table fills in its address and the name of its key, and goes with them.
  const server = page.getByLabel('Server', { exact: true });
  await server.selectOption('Groq');
  expect(await page.getByLabel('Base URL').inputValue()).toBe('https://api.groq.com/openai/v1');
  expect(await page.getByLabel('API key secret').inputValue()).toBe('GROQ_API_KEY');
  await server.selectOption('Ollama');
  expect(await page.getByLabel('Base URL').inputValue()).toBe('http://localhost:11434/v1');
  expect(await page.getByLabel('API key secret').inputValue()).toBe('');
  await server.selectOption('Another');
  expect(await page.getByLabel('Base URL').inputValue()).toBe('');
  // The error stays until the field changes.
  await page.getByLabel('Base URL').fill('http://192.0.2.1/v1');
  await page.getByLabel('Base URL').and(page.locator('[aria-invalid=true]')).waitFor({ state: 'detached' });
  await page.getByLabel('Name', { exact: true }).last().fill('count');
  await page.getByRole('button', { name: 'Create agent' }).click();
  await page.getByLabel('Base URL').and(page.locator('[aria-invalid=true]')).waitFor();
  await page.getByLabel('Base URL').and(page.locator(':focus')).waitFor();
});

test('tools of each type are added, described in plain words, reordered and removed with the keyboard', async () => {
  const other = await createAgent({ name: 'Researcher' });
  const { agentId } = await createAgent();
  const page = await console.open(member, `/agents/${agentId}`, wide);
  const add = async (type: string, toolName: string) => {
    await page.getByRole('button', { name: `Add ${type}` }).press('Enter');
    // The focus is in the new tool's first field.
    await page.keyboard.type(toolName);
    await page.locator('summary').filter({ hasText: toolName }).waitFor();
    return page.getByRole('listitem').filter({ has: page.locator('summary').filter({ hasText: toolName }) });
  };
  const http = await add('HTTP request', 'refund');
  // A field that the user has not changed shows no error.
  expect(await page.getByText('problem').count()).toBe(0);
  await http.getByLabel('Method').selectOption('POST');
  await http.getByLabel('URL').fill('http://127.0.0.1:9/orders/{{input.order}}');
  await http.getByText('needs approval').waitFor();
  await http.getByLabel('Require approval').selectOption({ label: 'If the input matches a schema' });
  await write(http.getByLabel('Input schema for approval'), '{ "properties": { "cents": { "minimum": 5000 } } }');
  const mcp = await add('MCP server', 'crm');
  await mcp.getByLabel('URL').fill('http://127.0.0.1:9/mcp');
  await mcp.getByLabel('Require approval').selectOption({ label: 'Per tool of the server' });
  await write(mcp.getByLabel('Policy per tool'), '{ "find": "never" }');
  await mcp.getByLabel('Offer only some').check();
  await write(mcp.getByLabel('Tools to offer'), '["find"]');
  const client = await add('Client tool', 'count');
  await client.getByLabel('Has an effect: a call changes something outside').check();
  const agent = await add('Agent', 'research');
  await agent.getByLabel('Agent', { exact: true }).selectOption({ label: 'Researcher' });

  await page.getByRole('button', { name: 'Move or remove research' }).press('Enter');
  await page.getByRole('menuitem', { name: 'Move up' }).press('Enter');
  await page.getByText('research moved to position 3 of 4').waitFor();
  // The focus stays on the menu, so the tool can be moved again.
  const menu = page.getByRole('button', { name: 'Move or remove research' });
  await menu.and(page.locator(':focus')).waitFor();
  await page.getByRole('button', { name: 'Move or remove count' }).press('Enter');
  await page.getByRole('menuitem', { name: 'Remove' }).press('Enter');
  // The focused button is gone, so the focus moves to a button that adds a tool.
  await page.getByRole('button', { name: 'Add HTTP request' }).and(page.locator(':focus')).waitFor();
  // The rule and the placeholder are about properties that the input does not have yet.
  await page.keyboard.press('Control+s');
  await page.getByText(/^Line \d+ properties\.cents is not in the inputSchema/).waitFor();
  await page.getByText('has {{input.order}}, which is not in the inputSchema').first().waitFor();
  await write(
    http.getByLabel('Input schema', { exact: true }),
    '{ "properties": { "order": { "type": "string" }, "cents": { "type": "integer" } } }',
  );
  await page.keyboard.press('Control+s');
  await page.getByText('Version 2 saved').waitFor();
  expect((await newest(agentId)).tools).toEqual([
    {
      type: 'http',
      name: 'refund',
      description: '',
      inputSchema: { properties: { order: { type: 'string' }, cents: { type: 'integer' } } },
      request: { method: 'POST', url: 'http://127.0.0.1:9/orders/{{input.order}}' },
      approval: { when: { properties: { cents: { minimum: 5000 } } } },
    },
    { type: 'mcp', name: 'crm', url: 'http://127.0.0.1:9/mcp', approval: { find: 'never' }, allowedTools: ['find'] },
    { type: 'agent', name: 'research', description: '', agentId: other.agentId },
  ]);
  await expectAccessible(page);
});

test('models are chosen from the provider’s list, a tool’s request is tested, and an MCP server’s tools are chosen', async () => {
  const received: string[] = [];
  const server = createServer((request, response) => {
    received.push(`${request.method} ${request.url} ${request.headers.authorization ?? ''}`.trim());
    response.setHeader('content-type', 'application/json');
    response.end(request.url === '/v1/models' ? '{"data":[{"id":"llama-9","context_length":9000}]}' : '{"found":true}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const mcp = await startMcpServer({
    tools: ['find', 'drop'].map((name) => ({ name, inputSchema: { type: 'object' } })),
  });
  const { client } = console.service;
  await client.environments.secrets.set('staging', 'SHOP', { value: 'the-secret-of-the-shop', allowedHosts: [host] });
  const { agentId } = await createAgent({
    model: { provider: 'openai-compatible', model: 'mine', baseUrl: `http://${host}/v1` },
    tools: [
      {
        type: 'http',
        name: 'refund',
        description: '',
        inputSchema: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
        request: {
          method: 'POST',
          url: `http://${host}/refunds/{{input.order}}`,
          headers: { Authorization: '{{secrets.SHOP}}' },
        },
      },
      { type: 'mcp', name: 'crm', url: mcp.url, approval: { dropp: 'always' } },
    ],
  });
  const page = await console.open(member, `/agents/${agentId}`, wide);
  const model = page.getByLabel('Model', { exact: true }).last();
  // Nothing is requested before the field has the focus.
  await model.waitFor();
  expect(received).toEqual([]);
  await model.focus();
  await page.getByText('Not in the provider’s list. Type to choose from 1 models').waitFor();
  await model.fill('llama');
  await page.getByRole('option', { name: /^llama-9 9K tokens/ }).waitFor();
  await expectAccessible(page);
  await model.press('ArrowDown');
  await model.press('Enter');
  expect(await model.inputValue()).toBe('llama-9');
  await page.getByText('9,000 tokens').first().waitFor();
  expect(await page.getByRole('listbox', { name: 'Models' }).count()).toBe(0);
  // The list says which providers have no key.
  await model.press('ArrowDown');
  await page.getByText('Anthropic: no key in staging.').waitFor();
  await model.press('Escape');

  await page.getByText('refund', { exact: true }).click();
  await page.getByRole('button', { name: 'Send a test request' }).click();
  const dialog = page.getByRole('dialog');
  const send = dialog.getByRole('button', { name: 'Send request' });
  expect(await textIn(dialog.getByLabel('Test input'))).toContain('"order": ""');
  await write(dialog.getByLabel('Test input'), '{ "order": "17" }');
  expect(await send.isDisabled()).toBe(true);
  await dialog.getByLabel('Send a real POST request, without an approval').check();
  await send.click();
  await dialog.getByText(/^HTTP 200 in \d+ ms$/).waitFor();
  expect(received.at(-1)).toBe('POST /refunds/17 the-secret-of-the-shop');
  await dialog.getByText('Request', { exact: true }).click();
  await dialog.getByText('Authorization: [secret SHOP]').waitFor();
  await expectAccessible(page);
  await dialog.getByRole('button', { name: 'Close' }).click();

  await page.locator('summary').filter({ hasText: 'crm' }).click();
  await page.getByRole('button', { name: 'List the server’s tools' }).click();
  await page
    .getByText('approval names tools that the server does not have: "dropp". It has: "drop", "find".')
    .waitFor();
  await page.getByRole('checkbox', { name: /^drop/ }).uncheck();
  await save(page).click();
  await page.getByText('Version 2 saved').waitFor();
  expect(await newest(agentId)).toMatchObject({
    model: { model: 'llama-9' },
    tools: [{ name: 'refund' }, { name: 'crm', allowedTools: ['find'] }],
  });
  await page.context().close();
  await mcp.close();
  server.closeAllConnections();
  server.close();
});

test('an agent is tried next to the form, in the environment of the page, and the next turn uses what was saved since', async () => {
  const say = (text: string) => ({ provider: 'scripted' as const, model: 't', settings: { script: [{ text }] } });
  const { agentId } = await createAgent({ model: say('You said {{input}}.') });
  const page = await console.open(member, `/agents/${agentId}?environment=production`, wide);
  await page.getByRole('tab', { name: 'Try it' }).click();
  await page.getByLabel('Message').fill('hello there');
  await page.getByRole('button', { name: 'Start session' }).click();
  await page.getByText('You said hello there.').first().waitFor();
  const { data } = await console.service.client.sessions.list({ agentId });
  expect(data).toMatchObject([{ environment: 'production', agentVersion: 1 }]);

  // The form next to it is still there, and says that the session does not have the unsaved changes.
  await write(page.getByLabel('Settings', { exact: true }), JSON.stringify(say('New: {{input}}').settings));
  await page.getByText('This session runs the saved version.').waitFor();
  await save(page).click();
  await page.getByText('This session runs version 2. Its next turn uses what you save.').waitFor();
  await page.getByRole('textbox', { name: 'Message' }).fill('again');
  await page.getByRole('textbox', { name: 'Message' }).press('Enter');
  await page.getByText('New: again').first().waitFor();
  // The URL includes the session.
  await page.reload();
  await page.getByText('New: again').first().waitFor();
  await expectAccessible(page);
});

test('a draft is tried without being saved, also before its agent is created', async () => {
  const page = await console.open(member, '/agents/new?template=assistant', wide);
  await name(page).fill('');
  await page.getByLabel('Message').fill('first words');
  await page.getByRole('button', { name: 'Run draft' }).click();
  await page.getByText('Fix the problems of the definition first.').waitFor();
  await name(page).fill('Parrot');
  await page.getByLabel('Message').press('Enter');
  await page.getByText('You said: first words').first().waitFor();
  await page.getByText('This session runs your draft.').waitFor();
  await name(page).fill('Parrot of Acme');
  await page.getByText('This session runs the draft as it was when it started.').waitFor();
  await page.getByRole('button', { name: 'Create agent' }).click();
  await page.getByRole('heading', { name: 'Parrot of Acme' }).waitFor();
  const agentId = /agt_[0-9a-z]+/.exec(page.url())![0];

  // What only the service refuses is at its field.
  await page.getByLabel('Provider').selectOption('openai-compatible');
  await page.getByLabel('Model', { exact: true }).last().fill('llama3.2');
  await page.getByLabel('Message').fill('second');
  await page.getByRole('button', { name: 'Run draft' }).click();
  await page.getByLabel('Base URL').and(page.locator('[aria-invalid=true]')).waitFor();
  expect(await errorOf(page, 'Base URL')).toBe('Base URL is required for openai-compatible, up to and including /v1.');
  await page.getByLabel('Provider').selectOption('scripted');
  await write(page.getByLabel('Settings', { exact: true }), '{ "script": [{ "text": "Draft: {{input}}" }] }');
  await page.getByRole('button', { name: 'Run draft' }).click();
  await page.getByText('Draft: second').first().waitFor();
  await expectAccessible(page);
  const { data } = await console.service.client.sessions.list({ agentId });
  expect(data).toMatchObject([{ draft: true, environment: 'staging' }]);
  expect((await newest(agentId)).version).toBe(1);
});

test('an admin sees which secrets of the definition an environment lacks', async () => {
  const { client } = console.service;
  await client.environments.secrets.set('staging', 'ONLY_STAGING', {
    value: 'only-for-staging',
    allowedHosts: ['a.example'],
  });
  const { agentId } = await createAgent({
    model: 'openai/gpt-5',
    tools: [{ type: 'mcp', name: 'crm', url: 'http://127.0.0.1:9/mcp', headers: { a: '{{secrets.ONLY_STAGING}}' } }],
  });
  const page = await console.open(console.owner, `/agents/${agentId}`, wide);
  const lacking = (secret: string) => page.getByRole('listitem').filter({ hasText: `${secret} in` });
  await lacking('OPENAI_API_KEY').getByRole('link', { name: 'staging' }).waitFor();
  expect(await lacking('ONLY_STAGING').getByRole('link').allTextContents()).toEqual(['production']);
  await expectAccessible(page);
  await lacking('ONLY_STAGING').getByRole('link').click();
  await page.waitForURL(/\/environments\/production/);
});

test('a schema is written from an example', async () => {
  const page = await console.open(member, '/agents/new?template=assistant&view=json', wide);
  await page.getByRole('button', { name: 'Add Client tool' }).click();
  await page.getByRole('button', { name: 'Write from an example' }).click();
  const dialog = page.getByRole('dialog');
  const use = dialog.getByRole('button', { name: 'Use schema' });
  expect(await use.isDisabled()).toBe(true);
  await write(dialog.getByLabel('Example'), '{ "orderId": "1042", "cents": 4250 }');
  await expectAccessible(page);
  await use.click();
  expect(JSON.parse(await textIn(page.getByLabel('Input schema').last()))).toEqual({
    type: 'object',
    properties: { orderId: { type: 'string' }, cents: { type: 'integer' } },
    required: ['orderId', 'cents'],
  });
});

test('on a phone an agent is created with the keyboard alone, one view at a time', async () => {
  const page = await console.open(member, '/agents/new', { ...phone, isMobile: false });
  await expectAccessible(page);
  await page.getByRole('link', { name: /^Echo assistant/ }).press('Enter');
  await name(page).fill('');
  await page.getByRole('button', { name: 'Add Client tool' }).press('Enter');
  await page.keyboard.type('count');
  const go = async (key: string, tab: string) => {
    await page.keyboard.press(key);
    await page.getByRole('tab', { name: tab }).and(page.locator(':focus')).waitFor();
  };
  await page.getByRole('tab', { name: 'Form' }).focus();
  await go('ArrowRight', 'Try it');
  await go('ArrowRight', 'JSON');
  expect(await textIn(json(page))).toContain('"name": "count"');
  await go('ArrowLeft', 'Try it');
  await go('ArrowLeft', 'Form');
  // The open tool stays open.
  await page.getByLabel('Input schema').waitFor();
  await go('ArrowRight', 'Try it');
  await go('ArrowRight', 'JSON');
  await json(page).waitFor();
  await page.keyboard.press('Control+s');
  // The focus moves to the field with the error.
  await page.locator('input:focus[data-path=name]').waitFor();
  await page.keyboard.type('Pocket');
  await page.keyboard.press('Control+s');
  await page.getByRole('heading', { name: 'Pocket' }).waitFor();
});
