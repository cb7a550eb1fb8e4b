// What the types of the client refuse, the service refuses too: each `@ts-expect-error` fails the compiler if the types accept the line.
import type { CreateAgent, CreateKey, CreateSchedule, Model, UpdateKey, UpdateSchedule } from '@signalbox/client';
import { beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let agentId: string;
beforeAll(async () => {
  service = await startTestService();
  ({ agentId } = await service.client.agents.create({ name: 'A', model: 'scripted/x' }));
});

const refused = { status: 400, code: 'invalid_request' };
const script = { script: [{ text: 'Hello' }] };

test('models that are incomplete, or of no provider, are refused by both', async () => {
  const models: CreateAgent['model'][] = [
    // @ts-expect-error: no provider
    'gpt-5',
    // @ts-expect-error: an unknown provider
    'mistral/large',
    // @ts-expect-error: no model
    { provider: 'openai' },
    // @ts-expect-error: no queue
    { provider: 'worker' },
    // @ts-expect-error: a worker chooses its own model
    { provider: 'worker', queue: 'q', model: 'gpt-5' },
    // @ts-expect-error: a queue is of a worker
    { provider: 'openai', model: 'gpt-5', queue: 'q' },
    // @ts-expect-error: no address
    { provider: 'openai-compatible', model: 'small' },
    // @ts-expect-error: a worker has no fallbacks
    { provider: 'worker', queue: 'q', fallbacks: [{ provider: 'openai', model: 'gpt-5' }] },
    // @ts-expect-error: a fallback without a model
    { provider: 'openai', model: 'gpt-5', fallbacks: [{ provider: 'openai' }] },
  ];
  for (const model of models)
    await expect(service.client.agents.create({ name: 'A', model }), JSON.stringify(model)).rejects.toMatchObject(
      refused,
    );
});

test('complete models are accepted by both, and their fields can be read without knowing the provider', async () => {
  const models: CreateAgent['model'][] = [
    'openai/gpt-5',
    'worker/q',
    { provider: 'scripted', model: 'x', settings: script },
    { provider: 'worker', queue: 'q' },
    { provider: 'anthropic', model: 'claude', fallbacks: [{ provider: 'scripted', model: 'y' }] },
    { provider: 'openai-compatible', model: 'small', baseUrl: 'https://models.example.com/v1' },
  ];
  const nameOf = ({ model, queue }: Model): string | undefined => model ?? queue;
  const created = await Promise.all(models.map((model) => service.client.agents.create({ name: 'A', model })));
  expect(created.map(({ model }) => nameOf(model))).toEqual(['gpt-5', 'q', 'x', 'q', 'claude', 'small']);
});

test('a key has a permission or scopes, for both', async () => {
  const { keys } = service.client;
  const wrong: CreateKey[] = [
    // @ts-expect-error: neither
    { name: 'k' },
    // @ts-expect-error: both
    { name: 'k', permission: 'read', scopes: ['agents:read'] },
  ];
  for (const key of wrong) await expect(keys.create(key)).rejects.toMatchObject(refused);
  const { keyId } = await keys.create({ name: 'k', scopes: ['agents:read'] });
  // @ts-expect-error: both
  const both: UpdateKey = { permission: 'read', scopes: ['agents:read'] };
  await expect(keys.update(keyId, both)).rejects.toMatchObject(refused);
  expect(await keys.update(keyId, { permission: 'read' })).toMatchObject({ permission: 'read' });
});

test('a schedule has cron or at, for both', async () => {
  const { schedules } = service.client;
  const to = { agentId, environment: 'production' };
  const [cron, at] = ['0 9 * * *', '2999-01-01T00:00:00Z'];
  const wrong: CreateSchedule[] = [
    // @ts-expect-error: neither
    to,
    // @ts-expect-error: both
    { ...to, cron, at },
    // @ts-expect-error: a time zone goes with cron
    { ...to, at, timezone: 'Europe/Berlin' },
  ];
  for (const schedule of wrong) await expect(schedules.create(schedule)).rejects.toMatchObject(refused);
  const { scheduleId } = await schedules.create({ ...to, cron, timezone: 'Europe/Berlin' });
  // @ts-expect-error: both
  const both: UpdateSchedule = { cron, at };
  await expect(schedules.update(scheduleId, both)).rejects.toMatchObject(refused);
  expect(await schedules.update(scheduleId, { at, cron: null, timezone: null })).toMatchObject({ cron: null });
});
