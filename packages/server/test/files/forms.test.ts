// Uploads as a form: one file, read as it arrives, and nothing else.
import sql from 'sql-template-tag';
import { beforeAll, describe, expect, test } from 'vitest';
import { contentOf, noise, png, sendUpload, sha256, type UploadOptions } from '../support/files.ts';
import { collectGarbage } from '../support/garbage.ts';
import { startTestService, type TestService } from '../support/service.ts';

const MIB = 1024 * 1024;
let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});

const post = (form: FormData, headers: Record<string, string> = {}) =>
  service.fetch('/api/v1/files?environment=production', { method: 'POST', body: form, headers });
const fileOf = async (response: Response) => {
  expect(response.status, await response.clone().text()).toBe(201);
  return ((await response.json()) as { file: Record<string, unknown> & { fileId: string } }).file;
};
const problemOf = async (response: Response) => (await response.json()) as { status: number; detail: string };
const rows = () => service.db.execute(sql`select 1 from files where organization_id is not null`);

function formWith(...files: [string, Blob, string?][]): FormData {
  const form = new FormData();
  for (const [field, blob, name] of files) form.append(field, blob, name);
  return form;
}

/** A form as bytes, and its content type. */
const rawForm = (parts: string, options: UploadOptions = {}) =>
  sendUpload(service, parts.replaceAll('\n', '\r\n'), {
    ...options,
    headers: { 'content-type': 'multipart/form-data; boundary=b', ...options.headers },
  });

test('a form with one file is that file, with the name and the type of its part', async () => {
  const stored = await fileOf(
    await post(formWith(['file', new Blob([png], { type: 'text/plain' }), 'Größe 日本.png'])),
  );
  expect(stored).toMatchObject({
    filename: 'Größe 日本.png',
    mediaType: 'image/png',
    bytes: png.length,
    sha256: sha256(png),
  });
  expect(Buffer.from(await (await contentOf(service, stored.fileId)).arrayBuffer())).toEqual(png);
  const table = new Blob(['a,b'], { type: 'text/csv' });
  expect(await fileOf(await post(formWith(['anything', table, '../up/a.csv'])))).toMatchObject({
    filename: 'a.csv',
    mediaType: 'text/csv',
  });
  expect(await fileOf(await post(formWith(['file', table, 'a.csv']), { 'x-filename': 'b.csv' }))).toMatchObject({
    filename: 'b.csv',
  });
});

test.each<[string, string]>([
  [`filename="_bersicht.txt"; filename*=UTF-8''%C3%9Cbersicht.txt`, 'Übersicht.txt'],
  [`filename*=utf-8'de'%C3%9Cbersicht.txt; filename="_bersicht.txt"`, 'Übersicht.txt'],
  [`filename*=ISO-8859-1''%DCbersicht.txt`, 'Übersicht.txt'],
  [`filename="plain.txt"; filename*=UTF-8''%zz`, 'plain.txt'],
  ['filename="Übersicht.txt"', 'Übersicht.txt'],
  ['filename="a%22b.txt"', 'a"b.txt'],
  ['filename="a\\"b;c.txt"', 'a"b;c.txt'],
  ['filename="C:\\dir\\a.txt"', 'a.txt'],
  ['filename=a.txt', 'a.txt'],
])('a part with %s has the name %s', async (disposition, filename) => {
  const form = `--b\nContent-Disposition: form-data; name="f"; ${disposition}\n\nhello\n--b--\n`;
  expect(await fileOf(await rawForm(form))).toMatchObject({ filename, bytes: 5 });
});

test('a part says in which charset its text is', async () => {
  const table = new Blob([Buffer.from([0xc9, 0xcd, 0xd1])], { type: 'text/csv; charset=KOI8-R' });
  expect(await fileOf(await post(formWith(['file', table, 'a.csv'])))).toMatchObject({
    mediaType: 'text/csv; charset=koi8-r',
  });
});

test('a file of 32 MiB is accepted in a form, and its content is exact', async () => {
  const bytes = noise(32 * MIB);
  const stored = await fileOf(await post(formWith(['file', new Blob([new Uint8Array(bytes)]), 'large.bin'])));
  expect(stored).toMatchObject({ bytes: 32 * MIB, sha256: sha256(bytes) });
});

describe('refused, and nothing of it stays', () => {
  test.each<[string, () => Promise<Response>, number, string]>([
    [
      'two files',
      () => post(formWith(['a', new Blob(['1']), 'a'], ['b', new Blob(['2']), 'b'])),
      400,
      'more than one file',
    ],
    ['no file', () => post(new FormData()), 400, 'has no file'],
    [
      'a field before the file',
      () => rawForm('--b\nContent-Disposition: form-data; name="x"\n\n1\n--b--\n'),
      400,
      'can have only the file',
    ],
    [
      'a field after the file',
      () =>
        rawForm(
          '--b\nContent-Disposition: form-data; name="f"; filename="f"\n\nthe file\n--b\nContent-Disposition: form-data; name="x"\n\n1\n--b--\n',
        ),
      400,
      'can have only the file',
    ],
    ['no boundary', () => rawForm('', { headers: { 'content-type': 'multipart/form-data' } }), 400, 'form can'],
    ['something that is no form', () => rawForm('x'.repeat(100_000)), 400, 'form'],
    [
      'a form that ends in the middle of the file',
      () => rawForm('--b\nContent-Disposition: form-data; name="f"; filename="f"\n\nthe fi'),
      400,
      'form',
    ],
    ['an empty file', () => post(formWith(['file', new Blob([]), 'empty'])), 422, 'empty'],
    [
      'a file that is too large',
      () => post(formWith(['file', new Blob([new Uint8Array(noise(32 * MIB + 1))]), 'l'])),
      413,
      '32 MiB',
    ],
    [
      'headers that are too long',
      () =>
        rawForm(`--b\nContent-Disposition: form-data; name="f"; filename="${'f'.repeat(20_000)}"\n\nthe file\n--b--\n`),
      400,
      'filename',
    ],
    [
      'a name with control characters',
      () => post(formWith(['file', new Blob(['1']), 'a\u202Egnp.exe'])),
      400,
      'filename',
    ],
  ])('%s', async (_, send, status, detail) => {
    const before = await rows();
    const problem = await problemOf(await send());
    expect([problem.status, problem.detail]).toEqual([status, expect.stringContaining(detail)]);
    expect(await rows()).toBe(before);
  });
});

test('memory stays flat while forms arrive', async () => {
  const piece = noise(MIB);
  let most = 0;
  const body = () =>
    new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(Buffer.from('--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'));
      },
      async pull(controller) {
        if (sent % 8 === 0) {
          await collectGarbage();
          most = Math.max(most, process.memoryUsage().arrayBuffers);
        }
        sent += 1;
        if (sent <= 31) return controller.enqueue(piece);
        controller.enqueue(Buffer.from('\r\n--b--\r\n'));
        controller.close();
      },
    });
  let sent = 0;
  await collectGarbage();
  const before = process.memoryUsage().arrayBuffers;
  for (let n = 0; n < 4; n++) {
    sent = 0;
    const response = await sendUpload(service, body(), {
      headers: { 'content-type': 'multipart/form-data; boundary=b' },
    });
    expect((await fileOf(response)).bytes).toBe(31 * MIB);
  }
  expect(most - before).toBeLessThan(24 * MIB);
});

test('a repeated form with the same key is the same file, whatever its boundary', async () => {
  const once = () => post(formWith(['file', new Blob(['again']), 'again.txt']), { 'idempotency-key': 'form' });
  const [a, b] = [await fileOf(await once()), await fileOf(await once())];
  expect(b.fileId).toBe(a.fileId);
});
