// A refusal names the field that is wrong and says what would be right, and nothing beside it.
import { routes } from '@signalbox/contract';
import { expect, test } from 'vitest';
import type { ApiError } from '../lib/api-error.ts';
import { validatorOf } from './validate.ts';

function refusal(operation: keyof typeof routes, body: unknown, query: object = {}, params: object = {}): unknown {
  try {
    validatorOf(routes[operation])({ params, query, body });
  } catch (error) {
    return (error as ApiError).errors;
  }
  throw new Error('It was not refused');
}

const agent = (more: object) => ({ name: 'Agent', model: 'scripted/test', ...more });
const mcp = (approval: unknown) =>
  agent({ tools: [{ type: 'mcp', name: 'crm', url: 'https://crm.example.com/mcp', approval }] });

test.each([
  ['a policy of one tool that is none', { find: 'sometimes' }, 'find', 'must be one of "always", "never", "once"'],
  ['a rule of one tool without its schema', { find: {} }, 'find.when', 'is required'],
])('%s is named with its tool', (_, approval, field, message) => {
  expect(refusal('createAgent', mcp(approval))).toEqual([{ path: `tools[0].approval.${field}`, message }]);
});

test('a value of no type that fits is told all that do', () => {
  expect(refusal('createAgent', mcp(5))).toEqual([
    { path: 'tools[0].approval', message: 'must be a string or an object' },
  ]);
});

test('a text of the wrong form is shown an example of the right one', () => {
  const agentId = expect.stringMatching(/^must look like "agt_\w{26}"$/);
  expect(refusal('openSession', { agentId: '17', environment: 'production' })).toEqual([
    { path: 'agentId', message: agentId },
  ]);
});

test.each(['gpt-5', 'nope/x', 'worker/'])('the model %s is told what there is', (model) => {
  const message =
    'must be "provider/model", its provider one of scripted, openai, anthropic, google, openai-compatible, or "worker/queue", such as "anthropic/claude-sonnet-4-5"';
  expect(refusal('createAgent', agent({ model }))).toEqual([{ path: 'model', message }]);
});

test('a field that there is not is told which there are, a number its bound, a value its type', () => {
  const limits = { maxSteps: 3, maxStepsPerTurn: 0, turnTimeoutSeconds: '60' };
  expect(refusal('createAgent', agent({ limits, tools: {} }))).toEqual([
    { path: 'tools', message: 'must be an array' },
    { path: 'limits.maxSteps', message: expect.stringMatching(/^is not a known field: there are maxStepsPerTurn, /) },
    { path: 'limits.maxStepsPerTurn', message: 'must be at least 1' },
    { path: 'limits.turnTimeoutSeconds', message: 'must be an integer' },
  ]);
  expect(refusal('listAgents', undefined, { archived: 'yes' })).toEqual([
    { path: 'archived', message: 'must be true or false' },
  ]);
});

test('who reads is not shown how it is checked: an e-mail, an empty field', () => {
  const message = 'must be an e-mail address, such as "mara@example.com"';
  expect(refusal('createInvitation', { role: 'member', email: 'mara' })).toEqual([{ path: 'email', message }]);
  expect(refusal('createInvitation', { role: 'member', email: '' })).toEqual([{ path: 'email', message }]);
  expect(refusal('createKey', { name: '', permission: 'read' })).toEqual([
    { path: 'name', message: 'must not be empty' },
  ]);
});

test('who asks for chunks of a type that is none is told which there are', () => {
  const sessionId = 'ses_01k9xq3v7gf3pbt8zn5e6m2r4c';
  expect(refusal('listChunks', undefined, { types: 'text' }, { sessionId })).toEqual([
    { path: 'types', message: expect.stringMatching(/^must be one or more of .*tool\.result.*, such as "message\./) },
  ]);
});

test('the only value that a field can have is named', () => {
  const session = { agentId: 'agt_01k9xq3v7gf3pbt8zn5e6m2r4c', environment: 'production' };
  expect(refusal('openSession', { ...session, input: [{ type: 'image', text: 'a cat' }] })).toEqual([
    { path: 'input[0].type', message: 'must be "text"' },
  ]);
});

test('a name that is no header’s is refused once', () => {
  const request = { method: 'GET', url: 'https://example.com/', headers: { 'A B': 'x' } };
  const tool = { type: 'http', name: 'get', description: '', inputSchema: { type: 'object' }, request };
  expect(refusal('createAgent', agent({ tools: [tool] }))).toEqual([
    { path: 'tools[0].request.headers.A B', message: 'must be the name of a header' },
  ]);
});
