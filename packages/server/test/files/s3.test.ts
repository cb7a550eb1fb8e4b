// What is specific to files in an S3-compatible store. What all stores have in common is in files.test.ts.
import sql from 'sql-template-tag';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { contentOf, noise, png, sendUpload, upload } from '../support/files.ts';
import { type S3Server, startS3Server } from '../support/s3-server.ts';
import { startTestService, type TestService } from '../support/service.ts';

const MIB = 1024 * 1024;
let s3: S3Server;
let service: TestService;
beforeAll(async () => {
  s3 = await startS3Server();
  service = await startTestService({ config: { filesUrl: s3.location } });
});
afterAll(async () => {
  await service.stop();
  await s3.stop();
});

test('the bytes are in the bucket below the prefix and the organization, and not in the database', async () => {
  const file = await upload(service, noise(11 * MIB));
  const [row] = await service.db.query<{ key: string; pieces: number }>(sql`
    select 'test/' || organization_id || '/' || file_id as key, (select count(*) from file_pieces)::int as pieces
    from files where bytes = ${file.bytes}`);
  expect(row!.pieces).toBe(0);
  expect(await s3.keys()).toContain(row!.key);
});

test('files that the database already has are still read and deleted after the store is set', async () => {
  const before = await startTestService();
  const bytes = noise(2 * MIB);
  const { fileId } = await upload(before, bytes);
  const node = await startTestService({ database: before.database, config: { filesUrl: s3.location } });
  expect(Buffer.from(await (await contentOf(node, fileId)).arrayBuffer()).equals(bytes)).toBe(true);
  await node.stop();
  await before.stop();
});

test('while the store is down, uploads and downloads get 503 or break off, without the keys in any log line, and work again afterwards', async () => {
  const { fileId } = await upload(service, png);
  const port = Number(new URL(s3.location.endpoint!).port);
  const gone = { ...s3.location, endpoint: `http://127.0.0.1:${port === 1 ? 2 : 1}` };
  const other = await startTestService({ database: service.database, config: { filesUrl: gone } });
  const refused = await sendUpload(other, png);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
  await expect(contentOf(other, fileId).then((response) => response.arrayBuffer())).rejects.toThrow();
  expect(other.logLines.filter((line) => line.includes('S3RVER'))).toEqual([]);
  expect(other.logLines.some((line) => line.includes('the store of files failed'))).toBe(true);
  await other.stop();
  expect((await contentOf(service, fileId)).status).toBe(200);
});
