// Files that an agent's model does not take are refused where they are sent.
import type { Content } from '@signalbox/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { noise, pdf, png, upload } from '../support/files.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

const agentWith = async (model: object) =>
  (await service.client.agents.create({ name: 'Reader', model: { provider: 'scripted', model: 'x', ...model } }))
    .agentId;
const saying = (...fileIds: string[]): Content => [
  { type: 'text', text: 'Read this.' },
  ...fileIds.map((fileId) => ({ type: 'file' as const, fileId })),
];
const environment = 'production';

const refusal = (path: string, why: string) => ({
  status: 422,
  code: 'file_not_taken',
  detail: `${path}: the model ${why}.`,
  errors: [{ path, message: `the model ${why}` }],
});

test('a session, a message, a fork and a schedule with a file that the model does not take are refused, and nothing is stored', async () => {
  const { client } = service;
  const { fileId } = await upload(service, png);
  const agentId = await agentWith({ input: ['pdf'] });
  const why = 'scripted/x takes no images';
  const input = saying(fileId);
  await expect(client.sessions.open({ agentId, environment, input })).rejects.toMatchObject(refusal('input[1]', why));

  const { sessionId } = await client.sessions.open({ agentId, environment, input: 'Hi' });
  await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('idle');
  await expect(client.sessions.sendMessage(sessionId, { content: input })).rejects.toMatchObject(
    refusal('content[1]', why),
  );
  await expect(client.sessions.fork(sessionId, { atTurn: 1, input })).rejects.toMatchObject(refusal('input[1]', why));
  const schedule = { agentId, environment, input, cron: '0 0 1 1 *' };
  await expect(client.schedules.create(schedule)).rejects.toMatchObject(refusal('input[1]', why));
  expect((await client.sessions.list({ agentId })).data).toHaveLength(1);
  expect((await client.sessions.messages(sessionId)).data).toHaveLength(2);
});

test('a well-known model is refused what it does not take, with what it takes', async () => {
  const { client } = service;
  const [photo, order, archive, large] = await Promise.all([
    upload(service, png),
    upload(service, pdf),
    upload(service, noise(100)),
    upload(service, Buffer.concat([png, noise(4 * 1024 * 1024)])),
  ]);
  const open = async (model: object, ...fileIds: string[]) =>
    client.sessions.open({ agentId: await agentWith(model), environment, input: saying(...fileIds) });
  await expect(open({ provider: 'openai', model: 'o3-mini' }, photo.fileId)).rejects.toMatchObject(
    refusal('input[1]', 'openai/o3-mini takes no images'),
  );
  const claude = { provider: 'anthropic', model: 'claude-sonnet-4-5' };
  await expect(open(claude, photo.fileId, order.fileId, archive.fileId)).rejects.toMatchObject(
    refusal('input[3]', 'anthropic/claude-sonnet-4-5 takes no files of the type application/octet-stream'),
  );
  await expect(open(claude, large.fileId)).rejects.toMatchObject(
    refusal('input[1]', 'anthropic/claude-sonnet-4-5 takes images of at most 3.75 MiB'),
  );
  const baseUrl = 'https://bedrock-runtime.eu-central-1.amazonaws.com';
  const nova = { provider: 'bedrock', model: 'eu.amazon.nova-pro-v1:0', baseUrl };
  const orders = await Promise.all(Array.from({ length: 5 }, () => upload(service, pdf)));
  const six = [order, ...orders].map(({ fileId }) => fileId);
  // A file that is named twice is one.
  await expect(open(nova, six[0]!, ...six)).rejects.toMatchObject(
    refusal('input[7]', 'bedrock/eu.amazon.nova-pro-v1:0 takes at most 5 PDF files at once'),
  );
});

test('a model that takes the file, or is unknown, gets the message', async () => {
  const { client } = service;
  const { fileId } = await upload(service, png);
  for (const model of [{}, { input: ['image'] }]) {
    const { sessionId } = await client.sessions.open({
      agentId: await agentWith(model),
      environment,
      input: saying(fileId),
    });
    await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('idle');
  }
});
