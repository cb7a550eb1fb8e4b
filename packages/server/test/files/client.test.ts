// Files through the client: every kind of content, progress, ranges, and what happens when it stops in the middle.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { noise, png, sha256 } from '../support/files.ts';
import { startTestService, type TestService } from '../support/service.ts';

const MIB = 1024 * 1024;
const environment = 'production';
let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

async function bytesOf(stream: ReadableStream<Uint8Array>): Promise<Buffer> {
  return Buffer.from(await new Response(stream as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer());
}

async function* parts(bytes: Buffer): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 70_000) yield bytes.subarray(at, at + 70_000);
}

test('bytes, a blob, a stream and a generator arrive as they are, and come back, whole or in part', async () => {
  const bytes = noise(MIB + 500);
  const whole = Uint8Array.from(bytes);
  const contents = [whole, new Blob([whole]), ReadableStream.from(parts(bytes)), parts(bytes)];
  for (const content of contents as (typeof whole)[]) {
    const file = await service.client.files.upload(content, { environment, filename: 'Maße.bin' });
    expect(file).toMatchObject({ filename: 'Maße.bin', bytes: bytes.length, sha256: sha256(bytes) });
    expect((await bytesOf(await service.client.files.content(file.fileId))).equals(bytes)).toBe(true);
    const part = await service.client.files.content(file.fileId, { range: { first: 10, last: 19 } });
    expect((await bytesOf(part)).equals(bytes.subarray(10, 20))).toBe(true);
    const end = await service.client.files.content(file.fileId, { range: { first: bytes.length - 3 } });
    expect((await bytesOf(end)).equals(bytes.subarray(-3))).toBe(true);
    expect(await service.client.files.get(file.fileId)).toEqual(file);
  }
});

test('a browser’s file brings its name and the kind of its text', async () => {
  const file = await service.client.files.upload(new File(['a,b\n'], 'table.csv', { type: 'text/csv' }), {
    environment,
  });
  expect(file).toMatchObject({ filename: 'table.csv', mediaType: 'text/csv' });
});

test('progress grows to the size of the content', async () => {
  const bytes = Uint8Array.from(noise(MIB));
  for (const [content, totalBytes] of [
    [bytes, MIB],
    [new Blob([bytes]), MIB],
    [parts(Buffer.from(bytes)), null],
  ] as const) {
    const seen: { sentBytes: number; totalBytes: number | null }[] = [];
    await service.client.files.upload(content, { environment, onProgress: (progress) => seen.push(progress) });
    expect(seen.length).toBeGreaterThan(5);
    expect(seen.at(-1)).toEqual({ sentBytes: MIB, totalBytes });
    expect(seen.map(({ sentBytes }) => sentBytes)).toEqual(
      seen.map(({ sentBytes }) => sentBytes).toSorted((a, b) => a - b),
    );
    expect(new Set(seen.map((one) => one.totalBytes))).toEqual(new Set([totalBytes]));
  }
});

test('an aborted upload rejects with the reason, stops reading its source, and leaves no file', async () => {
  const stop = new AbortController();
  const closed = Promise.withResolvers<void>();
  async function* endless() {
    try {
      for (let count = 0; ; count += 1) {
        if (count === 20) stop.abort(new Error('changed my mind'));
        yield new Uint8Array(10_000);
      }
    } finally {
      closed.resolve();
    }
  }
  const before = (await service.client.files.list()).data;
  await expect(service.client.files.upload(endless(), { environment }, { signal: stop.signal })).rejects.toThrow(
    'changed my mind',
  );
  await closed.promise;
  expect((await service.client.files.list()).data).toEqual(before);
});

test('files are listed page by page, newest first', async () => {
  const uploaded: string[] = [];
  for (const byte of [1, 2, 3]) {
    uploaded.unshift((await service.client.files.upload(new Uint8Array([byte]), { environment })).fileId);
  }
  const listed: string[] = [];
  for await (const { fileId } of service.client.files.list({ limit: 1 })) {
    listed.push(fileId);
    if (listed.length === uploaded.length) break;
  }
  expect(listed).toEqual(uploaded);
});

test('refusals are errors of the client: too large, empty, gone, and a range after the end', async () => {
  const tooLarge = new Blob(Array.from({ length: 33 }, () => new Uint8Array(MIB)));
  await expect(service.client.files.upload(tooLarge, { environment })).rejects.toMatchObject({
    status: 413,
    code: 'payload_too_large',
  });
  await expect(service.client.files.upload(new Uint8Array(), { environment })).rejects.toMatchObject({
    code: 'file_invalid',
  });
  const { fileId } = await service.client.files.upload(Uint8Array.from(png), { environment });
  await expect(service.client.files.content(fileId, { range: { first: 10_000 } })).rejects.toMatchObject({
    code: 'range_invalid',
  });
  expect(await service.client.files.delete(fileId)).toEqual({ fileId, deleted: true });
  await expect(service.client.files.content(fileId)).rejects.toMatchObject({ code: 'not_found' });
});
