// Raw requests, for what the client would never send.
import type { Problem } from '@signalbox/contract';

export interface RawResponse {
  status: number;
  headers: Headers;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of every shape
  json: any;
}

export interface RawOptions {
  key?: string;
  body?: unknown;
  /** Sent unchanged, instead of `body`. */
  raw?: string | Uint8Array<ArrayBuffer>;
  headers?: Record<string, string>;
}

/** `path` is below `/api/v1` unless it is a whole URL. */
export async function send(url: string, method: string, path: string, options: RawOptions = {}): Promise<RawResponse> {
  const { key, body, raw, headers = {} } = options;
  const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  const response = await fetch(path.startsWith('http') ? path : `${url}/api/v1${path}`, {
    method,
    redirect: 'manual',
    headers: {
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...(payload !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(payload !== undefined && { body: payload }),
  });
  const text = await response.text();
  const isJson = /json/.test(response.headers.get('content-type') ?? '');
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: isJson && text !== '' ? JSON.parse(text) : undefined,
  };
}

/** Checks what every error response must have. */
export function asProblem(response: RawResponse): Problem {
  const problem = response.json as Problem;
  if (!response.headers.get('content-type')?.startsWith('application/problem+json'))
    throw new Error('Not a problem document');
  if (problem.status !== response.status) throw new Error('The body has another status');
  if (problem.requestId !== response.headers.get('x-request-id'))
    throw new Error('The request id in the body is another one');
  if (response.headers.get('cache-control') !== 'no-store') throw new Error('The response may be cached');
  return problem;
}
