// Files over HTTP, in each store: what is stored is what was sent, and what is sent back can do no harm.
import type { Problem, StoredFile } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { contentOf, noise, pdf, png, sendUpload, sha256, upload } from '../support/files.ts';
import { addOrganization } from '../support/organization.ts';
import { type S3Server, startS3Server } from '../support/s3-server.ts';
import { startTestService, type TestService } from '../support/service.ts';

const MIB = 1024 * 1024;
describe.each(['database', 's3'])('files in the store: %s', (store) => {
  let service: TestService;
  let s3: S3Server | undefined;
  const configOf = () => (s3 ? { filesUrl: s3.location } : {});
  beforeAll(async () => {
    s3 = store === 's3' ? await startS3Server() : undefined;
    service = await startTestService({ config: configOf() });
  });
  afterAll(async () => {
    await service.stop();
    await s3?.stop();
  });

  const problemOf = async (response: Response) => (await response.json()) as Problem;
  const call = (path: string, init: RequestInit = {}) => service.fetch(`/api/v1${path}`, init);

  /** Rows and objects that belong to no file. */
  async function leftovers(): Promise<number> {
    const [row] = await service.db.query<{ rows: number; files: number }>(sql`
    select (select count(*) from files where purge_after is not null)::int
      + (select count(*) from file_pieces p where not exists (
        select 1 from files f where f.organization_id = p.organization_id and f.file_id = p.file_id))::int as rows,
      (select count(*) from files)::int as files`);
    return row!.rows + (s3 ? (await s3.keys()).length - row!.files : 0);
  }

  test('a file is what was sent: its bytes, its size, its hash and its name', async () => {
    const bytes = noise(3 * MIB + 17);
    const file = await upload(service, bytes, { headers: { 'x-filename': 'archive.bin' } });
    expect(file).toEqual({
      fileId: expect.stringMatching(/^file_/),
      environment: 'production',
      filename: 'archive.bin',
      mediaType: 'application/octet-stream',
      bytes: bytes.length,
      sha256: sha256(bytes),
      sessionId: null,
      uploadedBy: { type: 'api_key', id: expect.stringMatching(/^key_/), name: 'Test' },
      createdAt: expect.any(String),
    });
    expect(((await (await call(`/files/${file.fileId}`)).json()) as { file: StoredFile }).file).toEqual(file);
    const content = await contentOf(service, file.fileId);
    expect(content.status).toBe(200);
    expect(Buffer.from(await content.arrayBuffer()).equals(bytes)).toBe(true);
  });

  test.each([
    ['one byte', 1],
    ['one piece', MIB],
    ['one byte more than a piece', MIB + 1],
    ['the largest file', 32 * MIB],
  ])('%s is stored and read whole, sent with its length or without', async (_, size) => {
    const bytes = noise(size);
    const chunked = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < size; at += 100_000) controller.enqueue(bytes.subarray(at, at + 100_000));
        controller.close();
      },
    });
    for (const body of [bytes, chunked]) {
      const file = await upload(service, body);
      expect([file.bytes, file.sha256]).toEqual([size, sha256(bytes)]);
      expect(Buffer.from(await (await contentOf(service, file.fileId)).arrayBuffer()).equals(bytes)).toBe(true);
    }
  });

  test('one byte too many is refused with 413 before it is read, or when it arrives, and nothing of it stays', async () => {
    const before = await leftovers();
    const bytes = noise(32 * MIB + 1);
    const stream = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(bytes);
        controller.close();
      },
    });
    for (const body of [bytes, stream]) {
      const response = await sendUpload(service, body);
      expect([response.status, (await problemOf(response)).detail]).toEqual([413, 'A file can have at most 32 MiB.']);
    }
    expect(await leftovers()).toBe(before);
  });

  test('an empty file, several files in one body and an unknown environment are refused in words, and nothing stays', async () => {
    const before = await leftovers();
    expect(await problemOf(await sendUpload(service, ''))).toMatchObject({ status: 422, code: 'file_invalid' });
    const mixed = await sendUpload(service, png, { headers: { 'content-type': 'multipart/mixed; boundary=x' } });
    expect(await problemOf(mixed)).toMatchObject({ status: 415, code: 'unsupported_media_type' });
    expect(await problemOf(await sendUpload(service, png, { environment: 'elsewhere' }))).toMatchObject({
      status: 404,
      detail: 'There is no environment "elsewhere".',
    });
    expect(await problemOf(await call('/files', { method: 'POST', body: 'x' }))).toMatchObject({
      status: 400,
      errors: [{ path: 'environment', message: 'is required in the query' }],
    });
    expect(await leftovers()).toBe(before);
  });

  test.each<[string, Uint8Array | string, string | undefined, string]>([
    ['an image that claims to be a page', png, 'text/html', 'image/png'],
    ['a page that claims to be an image', '<html><script>alert(1)</script>', 'image/png', 'text/plain'],
    ['a page that begins like an image', 'GIF89a=1;/*<script>alert(1)</script>*/', 'image/gif', 'text/plain'],
    [
      'a drawing with a script',
      '<svg xmlns="http://www.w3.org/2000/svg"><script/></svg>',
      'image/svg+xml',
      'text/plain',
    ],
    ['a drawing with an XML declaration', '<?xml version="1.0"?><svg/>', 'image/svg+xml', 'application/xml'],
    ['a document that is text', pdf, 'text/plain', 'application/pdf'],
    [
      'text that begins like a bitmap',
      'BMW is a maker of cars, and this is a long text about it.',
      undefined,
      'text/plain',
    ],
    ['a table', 'a,b\n1,2\n', 'text/csv; charset=utf-8', 'text/csv'],
    ['JSON', '{"a":1}', 'application/json', 'application/json'],
    ['text of an unknown kind', 'x = 1', 'application/x-toml', 'text/plain'],
    ['text that is not UTF-8', Buffer.from('Grüße', 'latin1'), 'text/plain', 'text/plain; charset=windows-1252'],
    ['text with a NUL', Buffer.from('a\0b'), 'text/plain', 'application/octet-stream'],
  ])('the type of a file is that of its bytes: %s', async (_, body, claimed, mediaType) => {
    const file = await upload(service, body, { headers: claimed ? { 'content-type': claimed } : {} });
    expect(file.mediaType).toBe(mediaType);
  });

  test('a character that two chunks share is still text', async () => {
    const bytes = Buffer.from('é'.repeat(200_000));
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < bytes.length; at += 4_099) controller.enqueue(bytes.subarray(at, at + 4_099));
        controller.close();
      },
    });
    expect((await upload(service, stream)).mediaType).toBe('text/plain');
    expect((await upload(service, bytes.subarray(0, bytes.length - 1))).mediaType).toBe('application/octet-stream');
  });

  test.each([
    ['C:\\Users\\me\\photo.png', 'photo.png'],
    ['../../etc/passwd', 'passwd'],
    [encodeURIComponent('Übersicht 2026 – "neu".pdf'), 'Übersicht 2026 – "neu".pdf'],
    [Buffer.from('Übersicht.pdf').toString('latin1'), 'Übersicht.pdf'],
  ])('the name %s becomes %s', async (header, filename) => {
    const file = await upload(service, png, { headers: { 'x-filename': header } });
    expect(file.filename).toBe(filename);
    const disposition = (await contentOf(service, file.fileId)).headers.get('content-disposition')!;
    expect(disposition).toMatch(/^attachment; filename=/);
    expect(disposition).not.toMatch(/[\r\n]/);
  });

  test.each(['..', 'a/', '%00.png', 'a%0d%0aSet-Cookie:%20x=1', 'photo%E2%80%AEgnp.exe', '%zz', 'x'.repeat(256)])(
    'the name %s is refused, and names what is right',
    async (header) => {
      const response = await sendUpload(service, png, { headers: { 'x-filename': header } });
      expect(await problemOf(response)).toMatchObject({ status: 400, errors: [{ path: 'X-Filename' }] });
    },
  );

  test('a download is an attachment that no browser runs or keeps', async () => {
    const { fileId, sha256: hash } = await upload(service, '<script>alert(1)</script>', {
      headers: { 'content-type': 'text/html', 'x-filename': 'page.html' },
    });
    const { headers } = await contentOf(service, fileId);
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-disposition': 'attachment; filename=page.html',
      'content-security-policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
      'cache-control': 'no-store',
      'accept-ranges': 'bytes',
      etag: `"${hash}"`,
    });
  });

  test('text in another charset is stored as it was sent, and downloaded with its charset', async () => {
    const bytes = Buffer.from('\ufeffname;city\r\nZoë;Köln\r\n', 'utf16le');
    const {
      fileId,
      mediaType,
      sha256: hash,
    } = await upload(service, bytes, { headers: { 'content-type': 'text/csv' } });
    expect([mediaType, hash]).toEqual(['text/csv; charset=utf-16le', sha256(bytes)]);
    const content = await contentOf(service, fileId);
    expect(content.headers.get('content-type')).toBe('text/csv; charset=utf-16le');
    expect(Buffer.from(await content.arrayBuffer()).equals(bytes)).toBe(true);
  });

  test('ranges and conditions follow RFC 9110', async () => {
    const bytes = noise(MIB + 100);
    const { fileId, sha256: hash } = await upload(service, bytes);
    const get = async (headers: Record<string, string>) => {
      const response = await contentOf(service, fileId, headers);
      const body = Buffer.from(await response.arrayBuffer());
      return { status: response.status, range: response.headers.get('content-range'), body };
    };
    const size = bytes.length;
    const part = (start: number, end: number) => ({
      status: 206,
      range: `bytes ${start}-${end - 1}/${size}`,
      body: bytes.subarray(start, end),
    });
    const whole = { status: 200, range: null, body: bytes };
    expect(await get({ range: 'bytes=0-0' })).toEqual(part(0, 1));
    // Across the border between two pieces.
    expect(await get({ range: `bytes=${MIB - 10}-${MIB + 9}` })).toEqual(part(MIB - 10, MIB + 10));
    expect(await get({ range: 'bytes=5-' })).toEqual(part(5, size));
    expect(await get({ range: 'bytes=-7' })).toEqual(part(size - 7, size));
    expect(await get({ range: `bytes=-${size * 2}` })).toEqual(part(0, size));
    expect(await get({ range: `bytes=10-${size * 2}` })).toEqual(part(10, size));
    for (const range of [
      'bytes=5-4',
      'bytes=0-1,3-4',
      'lines=0-1',
      'bytes=-',
      'bytes=a-b',
      `bytes=${'9'.repeat(20)}-`,
    ]) {
      expect(await get({ range }), range).toEqual(whole);
    }
    for (const range of [`bytes=${size}-`, 'bytes=-0']) {
      const { status, range: given, body } = await get({ range });
      expect([status, given, JSON.parse(body.toString()).code]).toEqual([416, `bytes */${size}`, 'range_invalid']);
    }
    expect((await get({ 'if-none-match': `"x", W/"${hash}"` })).status).toBe(304);
    expect(await get({ 'if-none-match': '"x"' })).toEqual(whole);
    expect(await get({ range: 'bytes=0-0', 'if-range': `"${hash}"` })).toEqual(part(0, 1));
    expect(await get({ range: 'bytes=0-0', 'if-range': '"x"' })).toEqual(whole);
    const head = await call(`/files/${fileId}/content`, { method: 'HEAD', headers: { range: 'bytes=0-0' } });
    expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, String(size), '']);
  });

  test('the same upload with the same Idempotency-Key makes one file; another content is refused', async () => {
    const before = await leftovers();
    const headers = { 'idempotency-key': 'once', 'x-filename': 'a.png' };
    const first = await sendUpload(service, png, { headers });
    const second = await sendUpload(service, png, { headers });
    expect(await second.text()).toBe(await first.text());
    expect([first.status, second.status, second.headers.get('idempotent-replayed')]).toEqual([201, 201, 'true']);
    for (const [body, filename] of [
      [pdf, 'a.png'],
      [png, 'b.png'],
    ] as const) {
      const other = await sendUpload(service, body, { headers: { ...headers, 'x-filename': filename } });
      expect(await problemOf(other)).toMatchObject({ status: 409, code: 'idempotency_conflict' });
    }
    expect(await leftovers()).toBe(before);
  });

  test('a deleted file is gone for every route, and its bytes with it', async () => {
    const { fileId } = await upload(service, png);
    expect(await (await call(`/files/${fileId}`, { method: 'DELETE' })).json()).toEqual({ fileId, deleted: true });
    for (const [method, path] of [
      ['GET', `/files/${fileId}`],
      ['GET', `/files/${fileId}/content`],
      ['DELETE', `/files/${fileId}`],
    ] as const) {
      expect((await call(path, { method })).status, `${method} ${path}`).toBe(404);
    }
    const { data } = (await (await call('/files?limit=100')).json()) as { data: StoredFile[] };
    expect(data.map((file) => file.fileId)).not.toContain(fileId);
  });

  test('uploads and deletions are in the event log, with the caller and without the content', async () => {
    const { fileId } = await upload(service, 'a very private text', { headers: { 'x-filename': 'a.txt' } });
    await call(`/files/${fileId}`, { method: 'DELETE' });
    const { data } = await service.client.events.list({ resourceId: fileId, order: 'asc' });
    expect(data.map(({ type, actor, environment }) => [type, actor.type, environment])).toEqual([
      ['file.created', 'api_key', 'production'],
      ['file.deleted', 'api_key', 'production'],
    ]);
    expect(data[0]!.changes).toMatchObject({
      mediaType: [null, 'text/plain'],
      bytes: [null, 19],
    });
    // An upload is of an environment, not of an agent.
    expect(data.some((record) => 'agentId' in record)).toBe(false);
    expect(JSON.stringify(data)).not.toContain('private');
  });

  test('an organization has a limit for all of its files, which a deletion makes room under', async () => {
    const small = await startTestService({ config: { ...configOf(), maxFileMegabytes: 2 } });
    const first = await upload(small, noise(MIB));
    await upload(small, noise(MIB / 2));
    const refused = await sendUpload(small, noise(MIB));
    expect(await problemOf(refused)).toMatchObject({
      status: 409,
      code: 'storage_full',
      detail: 'The files of the organization may have 2 MiB together. Delete some first.',
    });
    await small.fetch(`/api/v1/files/${first.fileId}`, { method: 'DELETE' });
    await upload(small, noise(MIB));
    await upload(small, noise(MIB / 2));
    // Full to the last byte: refused before the content is read.
    expect((await sendUpload(small, 'x')).status).toBe(409);
    await small.stop();
  });

  test('nobody sees the files of another organization, nor with a limited key those of another environment', async () => {
    const mine = await upload(service, png);
    const staged = await upload(service, png, { environment: 'staging' });
    const stranger = await addOrganization(service, 'Other');
    const { secret: limited } = await service.client.keys.create({
      name: 'staging only',
      permission: 'write',
      environments: ['staging'],
    });
    const status = async (key: string, method: string, path: string) =>
      (await call(path, { method, headers: { authorization: `Bearer ${key}` } })).status;
    for (const path of [`/files/${mine.fileId}`, `/files/${mine.fileId}/content`]) {
      expect(await status(stranger, 'GET', path)).toBe(404);
      expect(await status(limited!, 'GET', path)).toBe(403);
    }
    expect(await status(stranger, 'DELETE', `/files/${mine.fileId}`)).toBe(404);
    expect(await status(limited!, 'DELETE', `/files/${mine.fileId}`)).toBe(403);
    expect((await sendUpload(service, png, { key: limited! })).status).toBe(403);
    const list = async (key: string, query = '') => {
      const response = await call(`/files${query}`, { headers: { authorization: `Bearer ${key}` } });
      return ((await response.json()) as { data: StoredFile[] }).data;
    };
    expect(await list(stranger)).toEqual([]);
    expect((await list(limited!)).map(({ environment }) => environment)).toEqual(['staging']);
    expect((await list(service.adminKey, '?environment=staging')).map(({ fileId }) => fileId)).toEqual([staged.fileId]);
    expect(await status(limited!, 'GET', `/files/${staged.fileId}/content`)).toBe(200);
    expect((await upload(service, png, { key: limited!, environment: 'staging' })).environment).toBe('staging');
    expect(await status(limited!, 'DELETE', `/files/${staged.fileId}`)).toBe(200);
  });
});
