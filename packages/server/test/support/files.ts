// Files over plain HTTP, for tests that need exact requests.
import { createHash, randomBytes } from 'node:crypto';
import type { StoredFile } from '@signalbox/contract';
import { expect } from 'vitest';
import type { TestService } from './service.ts';

/** The smallest PNG, of one pixel. */
export const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
);
export const pdf = Buffer.from('%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n');

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
/** Bytes that no detector takes for a known format. */
export const noise = (bytes: number): Buffer =>
  Buffer.concat([Buffer.from([0, 1, 2, 3]), randomBytes(bytes)]).subarray(0, bytes);

export interface UploadOptions {
  key?: string;
  environment?: string;
  headers?: Record<string, string>;
}

/** The response to an upload. */
export function sendUpload(
  service: TestService,
  body: Uint8Array | ReadableStream<Uint8Array> | string,
  { key, environment = 'production', headers = {} }: UploadOptions = {},
): Promise<Response> {
  return service.fetch(`/api/v1/files?environment=${environment}`, {
    method: 'POST',
    headers: { ...(key && { authorization: `Bearer ${key}` }), ...headers },
    body,
    ...(body instanceof ReadableStream && { duplex: 'half' }),
  } as RequestInit);
}

export async function upload(
  service: TestService,
  body: Uint8Array | ReadableStream<Uint8Array> | string,
  options: UploadOptions = {},
): Promise<StoredFile> {
  const response = await sendUpload(service, body, options);
  expect(response.status, await response.clone().text()).toBe(201);
  return ((await response.json()) as { file: StoredFile }).file;
}

export function contentOf(
  service: TestService,
  fileId: string,
  headers: Record<string, string> = {},
): Promise<Response> {
  return service.fetch(`/api/v1/files/${fileId}/content`, { headers });
}
