/** The body of an upload, and how much of it was sent. */

/** A content: bytes, a `Blob` (such as a browser's `File`), or anything that yields bytes, such as a stream. */
export type FileBytes = Blob | Uint8Array<ArrayBuffer> | AsyncIterable<Uint8Array>;

export interface UploadProgress {
  sentBytes: number;
  /** null for a stream. */
  totalBytes: number | null;
}

export interface UploadBody {
  headers: Record<string, string>;
  /** A new body for each attempt, which `signal` ends. */
  body: (signal: AbortSignal) => NonNullable<RequestInit['body']>;
  isRepeatable: boolean;
  /** Sends the request, if `fetch` can't report progress here. */
  fetch?: typeof globalThis.fetch;
}

interface UploadOptions {
  filename?: string | undefined;
  mediaType?: string | undefined;
  onProgress?: ((progress: UploadProgress) => void) | undefined;
}

const PART_BYTES = 64 * 1024;

export function uploadBodyOf(content: FileBytes, { filename, mediaType, onProgress }: UploadOptions): UploadBody {
  const isBlob = content instanceof Blob;
  const name = filename ?? (isBlob ? (content as { name?: unknown }).name : undefined);
  const type = mediaType ?? (isBlob ? content.type : undefined);
  const headers: Record<string, string> = {
    'content-type': type || 'application/octet-stream',
    ...(typeof name === 'string' && name !== '' && { 'x-filename': encodeURIComponent(name.toWellFormed()) }),
  };
  if (!isBlob && !(content instanceof Uint8Array)) {
    return { headers, body: (signal) => streamOf(content, null, signal, onProgress), isRepeatable: false };
  }
  const totalBytes = isBlob ? content.size : content.byteLength;
  if (!onProgress) return { headers, body: () => content, isRepeatable: true };
  const xhr = (globalThis as { XMLHttpRequest?: XhrConstructor }).XMLHttpRequest;
  if (xhr) {
    // Browsers can't stream a request over HTTP/1.1, and `fetch` reports no progress.
    const fetch = fetchByXhr(xhr, (sentBytes) => onProgress({ sentBytes, totalBytes }));
    return { headers, body: () => content, isRepeatable: true, fetch };
  }
  return { headers, body: (signal) => streamOf(partsOf(content), totalBytes, signal, onProgress), isRepeatable: true };
}

async function* partsOf(content: Blob | Uint8Array): AsyncGenerator<Uint8Array> {
  const size = content instanceof Blob ? content.size : content.byteLength;
  for (let at = 0; at < size; at += PART_BYTES) {
    if (content instanceof Uint8Array) yield content.subarray(at, at + PART_BYTES);
    else yield new Uint8Array(await content.slice(at, at + PART_BYTES).arrayBuffer());
  }
}

function streamOf(
  content: AsyncIterable<Uint8Array>,
  totalBytes: number | null,
  signal: AbortSignal,
  onProgress: UploadOptions['onProgress'],
): ReadableStream<Uint8Array> {
  const parts = content[Symbol.asyncIterator]();
  let sentBytes = 0;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        // Node's fetch reads what it has been given to the end, even after it was aborted.
        if (signal.aborted) {
          await parts.return?.();
          throw signal.reason;
        }
        // The next part is requested when the one before was taken.
        if (sentBytes > 0) onProgress?.({ sentBytes, totalBytes });
        const { done, value } = await parts.next();
        if (done) return controller.close();
        sentBytes += value.byteLength;
        controller.enqueue(value);
      },
      async cancel() {
        await parts.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}

/** What is used of a browser's XMLHttpRequest: this package compiles without the types of the DOM. */
interface Xhr {
  readonly upload: { onprogress: ((event: { loaded: number }) => void) | null };
  readonly status: number;
  readonly statusText: string;
  readonly responseText: string;
  onload: (() => void) | null;
  onerror: (() => void) | null;
  onabort: (() => void) | null;
  open(method: string, url: string): void;
  setRequestHeader(name: string, value: string): void;
  getAllResponseHeaders(): string;
  send(body: unknown): void;
  abort(): void;
}
type XhrConstructor = new () => Xhr;

function fetchByXhr(Request: XhrConstructor, onSent: (bytes: number) => void): typeof globalThis.fetch {
  return (url, init = {}) =>
    new Promise<Response>((resolve, reject) => {
      const request = new Request();
      const { signal } = init;
      const abort = () => request.abort();
      const settle = (act: () => void) => () => {
        signal?.removeEventListener('abort', abort);
        act();
      };
      request.open(init.method ?? 'POST', String(url));
      for (const [name, value] of Object.entries((init.headers ?? {}) as Record<string, string>)) {
        request.setRequestHeader(name, value);
      }
      request.upload.onprogress = ({ loaded }) => onSent(loaded);
      request.onload = settle(() => {
        const headers = new Headers();
        for (const line of request.getAllResponseHeaders().trim().split('\r\n')) {
          const [, name = '', value = ''] = /^([^:]+): ?(.*)$/.exec(line) ?? [];
          if (name !== '') headers.append(name, value);
        }
        const { status, statusText } = request;
        resolve(new Response(request.responseText, { status, statusText, headers }));
      });
      request.onerror = settle(() => reject(new TypeError('the connection was lost')));
      request.onabort = settle(() => reject(signal?.reason ?? new TypeError('the request was aborted')));
      if (signal?.aborted) return reject(signal.reason);
      signal?.addEventListener('abort', abort, { once: true });
      request.send(init.body);
    });
}
