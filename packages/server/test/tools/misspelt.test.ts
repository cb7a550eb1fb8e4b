// A typing error in a definition is refused wherever a definition enters, if it would silently weaken what protects a call.
import type { CreateAgent, HttpTool, McpTool, Tool } from '@signalbox/client';
import sql from 'sql-template-tag';
import { beforeAll, describe, expect, test } from 'vitest';
import { uuidOf } from '../../src/lib/ids.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});

const environment = 'production';
const inputSchema = {
  type: 'object',
  properties: { order: { type: 'string' }, euros: { type: 'number' } },
  required: ['order', 'euros'],
};
const refund = (more: Partial<HttpTool> = {}): HttpTool => ({
  type: 'http',
  name: 'refund',
  description: 'Refunds an order.',
  inputSchema,
  request: { method: 'POST', url: 'https://shop.example.com/refund', body: { euros: '{{input.euros}}' } },
  ...more,
});
const agentWith = (...tools: Tool[]): CreateAgent => ({ name: 'Desk', model: 'scripted/echo', tools });
const above = (property: string) => ({ when: { properties: { [property]: { minimum: 50 } }, required: [property] } });

const expectRefusal = async (attempt: Promise<unknown>, errors: object[]) =>
  expect(
    await attempt.then(
      () => 'accepted',
      (error) => error,
    ),
  ).toMatchObject({ status: 400, code: 'invalid_request', errors });

describe('a rule about a property that the input does not have is refused', () => {
  const tool = refund({ approval: above('euro') });
  const errorAt = (path: string) => [
    { path: `${path}.approval.when.properties.euro`, message: 'is not in the inputSchema. Did you mean "euros"?' },
  ];

  test('in a new agent, with the nearest name', async () => {
    const { agents } = service.client;
    await expectRefusal(agents.create(agentWith(tool)), errorAt('tools[0]'));
    const { agentId } = await agents.create(agentWith(refund({ approval: above('euros') })));
    expect(await agents.get(agentId)).toMatchObject({ version: 1 });
  });

  test('in a change', async () => {
    const { agents } = service.client;
    const { agentId } = await agents.create(agentWith(refund()));
    await expectRefusal(agents.update(agentId, { tools: [refund(), { ...tool, name: 'again' }] }), errorAt('tools[1]'));
    expect(await agents.get(agentId)).toMatchObject({ version: 1 });
  });

  test('in a draft, also of a fork', async () => {
    const { agents, sessions } = service.client;
    const draft = { definition: agentWith(tool) };
    const errors = errorAt('draft.definition.tools[0]');
    await expectRefusal(sessions.open({ environment, draft }), errors);
    const { agentId } = await agents.create(agentWith());
    const { sessionId } = await sessions.open({ agentId, environment, input: 'Hello' });
    await expect.poll(async () => (await sessions.get(sessionId)).status).toBe('idle');
    await expectRefusal(sessions.fork(sessionId, { draft }), errors);
  });

  test('in a tool that is tried', async () => {
    const { agents } = service.client;
    await expectRefusal(agents.testTool(environment, { tool, input: { order: '1', euros: 1 } }), errorAt('tool'));
    const server: McpTool = {
      type: 'mcp',
      name: 'crm',
      url: 'https://crm.example.com/',
      approval: { find: { when: { properties: { at: { minimun: 1 } } } } },
    };
    await expectRefusal(agents.mcpTools(environment, { server }), [
      { path: 'server.approval.find.when.properties.at.minimun', message: expect.stringContaining('"minimum"') },
    ]);
  });

  test('in a rule with approvers, and of another agent, whose only input is a text', async () => {
    const { agents } = service.client;
    const rule = { policy: above('euro'), by: { roles: ['admin' as const] } };
    await expectRefusal(agents.create(agentWith(refund({ approval: rule }))), [
      { path: 'tools[0].approval.policy.when.properties.euro' },
    ]);
    const { agentId } = await agents.create(agentWith());
    const asks = { type: 'agent' as const, name: 'ask', description: 'Asks.', agentId, approval: above('text') };
    await expectRefusal(agents.create(agentWith(asks)), [
      {
        path: 'tools[0].approval.when.properties.text',
        message: 'is not in the inputSchema, which has "input" here',
      },
    ]);
  });
});

test('every other name that the inputSchema does not have is refused, all at once', async () => {
  const tools = [
    refund({ inputSchema: { ...inputSchema, required: ['ordr'] } }),
    refund({ name: 'typed', inputSchema: { order: 'string' } }),
    refund({ name: 'limited', inputSchema: { properties: { euros: { type: 'number', maximun: 50 } } } }),
  ];
  await expectRefusal(service.client.agents.create(agentWith(...tools)), [
    { path: 'tools[0].inputSchema.required[0]', message: expect.stringContaining('Did you mean "order"?') },
    { path: 'tools[1].inputSchema.order', message: expect.stringContaining('Properties belong in "properties"') },
    { path: 'tools[2].inputSchema.properties.euros.maximun', message: expect.stringContaining('"maximum"') },
  ]);
  const request = {
    method: 'POST' as const,
    url: 'https://shop.example.com/{{input.oder}}',
    headers: { 'X-Order': '{{input.order}} {{input.oder}}' },
    body: [{ sum: '{{input.euros}}' }, '{{input.euros.cents}}'],
  };
  await expectRefusal(service.client.agents.create(agentWith(refund({ request }))), [
    {
      path: 'tools[0].request.url',
      message: 'has {{input.oder}}, which is not in the inputSchema. Did you mean "order"?',
    },
    {
      path: 'tools[0].request.body.1',
      message: 'has {{input.euros.cents}}, which is not in the inputSchema: it says "number"',
    },
  ]);
  const notations = { ...request, url: 'https://shop.example.com/{order}', body: '{input.euros}' };
  await expectRefusal(service.client.agents.create(agentWith(refund({ request: notations }))), [
    { path: 'tools[0].request.url', message: expect.stringContaining('has {order}, which is not a placeholder') },
    { path: 'tools[0].request.body' },
    { path: 'tools[0].request.headers.X-Order' },
  ]);
  const outputSchema = { type: 'object', properties: { sum: {} }, required: ['total'] };
  await expectRefusal(service.client.agents.create({ ...agentWith(), outputSchema }), [
    { path: 'outputSchema.required[0]', message: expect.stringContaining('"total" is not in "properties"') },
  ]);
});

test('a definition that an earlier release accepted continues to run, and can be changed elsewhere, but its tools must be right to be sent again', async () => {
  const { agents, sessions } = service.client;
  const script = [{ toolCalls: [{ name: 'refund', input: { order: '1', euros: 99 } }] }, { text: 'Done.' }];
  const model = { provider: 'scripted' as const, model: 'x', settings: { script } };
  const tool: Tool = { type: 'client', name: 'refund', description: 'Refunds.', inputSchema };
  const { agentId } = await agents.create({ name: 'Old', model, tools: [tool] });
  const stored = JSON.stringify([{ ...tool, approval: above('euro') }]);
  await service.db.query(sql`
    update agent_versions set definition = jsonb_set(definition::jsonb, '{tools}', ${stored}::jsonb)
    where organization_id = ${uuidOf('org', service.organizationId)} and agent_id = ${uuidOf('agt', agentId)}`);

  const { sessionId } = await sessions.open({ agentId, environment, input: 'Hello' });
  await expect.poll(async () => (await sessions.get(sessionId)).status).toBe('waiting');
  expect((await sessions.get(sessionId)).waitingFor).toMatchObject({ type: 'toolResult' });
  const changed = await agents.update(agentId, { instructions: 'Be careful.' });
  expect(changed).toMatchObject({ version: 2, tools: [{ approval: above('euro') }] });
  await expectRefusal(agents.update(agentId, { tools: changed.tools }), [
    { path: 'tools[0].approval.when.properties.euro' },
  ]);
});
