// Uploads in a browser, where `fetch` reports no progress: sent by XMLHttpRequest, with the same result.
import { afterEach, expect, test } from 'vitest';
import { Signalbox } from './index.ts';

class FakeXhr {
  static sent: FakeXhr[] = [];
  static respond: (request: FakeXhr) => void;
  readonly upload: { onprogress: ((event: { loaded: number }) => void) | null } = { onprogress: null };
  readonly headers: Record<string, string> = {};
  status = 0;
  statusText = '';
  responseText = '';
  onload: (() => void) | null = null;
  onerror: (() => void) | null = null;
  onabort: (() => void) | null = null;
  url = '';
  body: unknown;
  open(method: string, url: string): void {
    this.url = `${method} ${url}`;
  }
  setRequestHeader(name: string, value: string): void {
    this.headers[name] = value;
  }
  getAllResponseHeaders(): string {
    return 'content-type: application/json\r\nx-request-id: req_1\r\n';
  }
  send(body: unknown): void {
    this.body = body;
    FakeXhr.sent.push(this);
    queueMicrotask(() => FakeXhr.respond(this));
  }
  abort(): void {
    this.onabort?.();
  }
  finish(status: number, body: object): void {
    Object.assign(this, { status, responseText: JSON.stringify(body) });
    this.onload?.();
  }
}

const browser = globalThis as { XMLHttpRequest?: unknown };
afterEach(() => {
  delete browser.XMLHttpRequest;
  FakeXhr.sent = [];
});

function clientInBrowser(): Signalbox {
  browser.XMLHttpRequest = FakeXhr;
  return new Signalbox({
    session: { organizationId: 'org_1', csrfToken: 'token' },
    baseUrl: 'http://localhost:4500',
    sleep: (ms) => (ms > 100_000 ? new Promise(() => {}) : Promise.resolve()),
  });
}

const content = new Blob(['hello'], { type: 'text/plain' });

test('an upload with progress is one request with all headers, and resolves with the file', async () => {
  FakeXhr.respond = (request) => {
    request.upload.onprogress!({ loaded: 2 });
    request.upload.onprogress!({ loaded: 5 });
    request.finish(201, { file: { fileId: 'file_1' } });
  };
  const seen: number[] = [];
  const params = { environment: 'production', filename: 'a b.txt', onProgress: progress };
  function progress({ sentBytes, totalBytes }: { sentBytes: number; totalBytes: number | null }) {
    seen.push(sentBytes, totalBytes!);
  }
  expect(await clientInBrowser().files.upload(content, params)).toEqual({ fileId: 'file_1' });
  expect(seen).toEqual([2, 5, 5, 5]);
  const [request] = FakeXhr.sent;
  expect(request!.url).toBe('POST http://localhost:4500/api/v1/files?environment=production');
  expect(request!.body).toBe(content);
  expect(request!.headers).toMatchObject({
    'content-type': 'text/plain',
    'x-filename': 'a%20b.txt',
    'x-signalbox-csrf': 'token',
    'idempotency-key': expect.any(String),
  });
});

test('a lost connection is retried with the same key, a refusal is not, and an abort rejects with its reason', async () => {
  const client = clientInBrowser();
  const params = { environment: 'production', onProgress() {} };
  FakeXhr.respond = (request) => {
    if (FakeXhr.sent.length === 1) request.onerror!();
    else request.finish(201, { file: { fileId: 'file_2' } });
  };
  expect(await client.files.upload(content, params)).toEqual({ fileId: 'file_2' });
  expect(new Set(FakeXhr.sent.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
  FakeXhr.respond = (request) =>
    request.finish(413, {
      code: 'payload_too_large',
      detail: 'Too large.',
      title: 'Too large',
      requestId: 'req_1',
      type: '',
      status: 413,
    });
  await expect(client.files.upload(content, params)).rejects.toMatchObject({ status: 413, code: 'payload_too_large' });
  const stop = new AbortController();
  FakeXhr.respond = () => stop.abort(new Error('closed the page'));
  await expect(client.files.upload(content, params, { signal: stop.signal })).rejects.toThrow('closed the page');
});
