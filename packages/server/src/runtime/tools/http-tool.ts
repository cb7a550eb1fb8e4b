// Runs a call of an `http` tool: sends one request, built from its author's template, and turns the response into the result.
//
//   2xx             the body: a JSON value if the response is JSON, text, or a file; null if it is empty
//   anything else   an error with the status and the beginning of the body
//
// A secret is only sent to hosts on its own list. A server may return it in its response (echoes, error pages that show the
// request), but the model never gets it: secrets are redacted before any other code reads the response.
import { type HttpTool, inputMediaOf } from '@signalbox/contract';
import type { EgressResponse, OrganizationEgress } from '../../egress/egress.ts';
import { EgressError } from '../../egress/errors.ts';
import { parseJson } from '../../lib/json.ts';
import type { Platform } from '../../platform.ts';
import type { StoredResponse } from '../../sessions/state/operation-trace.ts';
import type { Redact } from './redact.ts';
import { type PreparedRequest, prepareRequest } from './request.ts';
import { beginningOf, RESPONSE_MAX_BYTES, shownJson, shownText, TOO_LONG, withoutResponse } from './result.ts';
import { ReturnedFile, storeFiles } from './returned-file.ts';
import { storedResponse } from './stored-response.ts';
import type { RenderedRequest } from './template.ts';
import type { RunTool, SentRequest, ToolOutcome } from './tool.ts';

const DEFAULT_TIMEOUT_SECONDS = 30;
/** Of a request that is shown to people. */
const SHOWN_BODY_MAX_CHARACTERS = 64 * 1024;
/** Of a file in a response: it is in memory until it is stored. */
const FILE_MAX_MIB = 8;

export function createHttpTool(platform: Pick<Platform, 'db' | 'vault' | 'egress'>): RunTool {
  return async (run, signal) => {
    signal.throwIfAborted();
    const tool = run.tool.source;
    if (tool.type !== 'http') throw new TypeError(`${run.tool.name} is not an http tool`);
    const given = { input: run.input, inputSchema: run.tool.inputSchema };
    const request = await prepareRequest(platform, run, tool.request, given);
    signal.throwIfAborted();
    if (typeof request === 'string') return { error: `Nothing was sent: ${request}.` };
    run.onRequest?.(sentRequest(request));
    const response = await send(platform.egress.of(run.organizationId), run.operationId, tool, request, signal);
    if (!(response instanceof EgressError)) run.onResponse?.(stored(response, request.redact));
    return await storeFiles(httpOutcome(response, request.redact), request.redact, run.saveFile);
  };
}

function sentRequest({ method, url, headers, body, redact }: PreparedRequest): SentRequest {
  return {
    method,
    url: shownText(url, redact),
    headers: Object.entries(headers).map(([name, value]) => [name, shownText(value, redact)]),
    body: body === null ? null : shownText(body, redact).slice(0, SHOWN_BODY_MAX_CHARACTERS).toWellFormed(),
  };
}

/** The result of a call has the whole body unless the call failed. */
function stored(response: EgressResponse, redact: Redact): StoredResponse {
  const { status, body } = response;
  const isInResult = (status >= 200 && status < 300) || body.length === 0 || body.length > RESPONSE_MAX_BYTES;
  const text = isInResult ? undefined : (textOf(response) ?? undefined);
  return storedResponse(response, body.length, redact, text);
}

async function send(
  egress: OrganizationEgress,
  operationId: string,
  { timeoutSeconds = DEFAULT_TIMEOUT_SECONDS }: HttpTool,
  { method, url, headers, body }: RenderedRequest,
  signal: AbortSignal,
): Promise<EgressResponse | EgressError> {
  // The key is the service's promise to the tool's server, so neither the template nor the model can set it.
  const own = Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'idempotency-key');
  try {
    return await egress.request({
      method,
      url,
      headers: { 'User-Agent': 'Signalbox', ...Object.fromEntries(own), 'Idempotency-Key': operationId },
      body,
      timeoutMs: timeoutSeconds * 1000,
      maxResponseBytes: (head) => (isFile(head) ? FILE_MAX_MIB * 1024 * 1024 : RESPONSE_MAX_BYTES),
      signal,
    });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof EgressError) return error;
    throw error;
  }
}

function httpOutcome(response: EgressResponse | EgressError, redact: Redact): ToolOutcome {
  if (response instanceof EgressError) return withoutResponse(response);
  const { status, body, truncated } = response;
  const ok = status >= 200 && status < 300;
  if (truncated && isFile(response)) return { error: `HTTP ${status}: the file is larger than ${FILE_MAX_MIB} MiB.` };
  if (truncated) return { error: `HTTP ${status}: the response is ${TOO_LONG}.` };
  if (status >= 300 && status < 400) return { error: `HTTP ${status}: redirects are not followed.` };
  if (body.length === 0) return ok ? { output: null } : { error: `HTTP ${status}` };

  const text = textOf(response);
  if (ok && isFile(response) && (text === null || isMedia(response))) return { output: fileIn(response, redact) };
  if (body.length > RESPONSE_MAX_BYTES) return { error: `HTTP ${status}: the response is ${TOO_LONG}.` };
  if (text === null) return { error: `HTTP ${status}: the response is not UTF-8 text, so it was not read.` };
  const shown = shownText(text, redact);
  const value = isJson(response) ? parseJson(shown) : undefined;
  const output = value === undefined ? shown : shownJson(value, redact);
  if (ok) return { output };
  return { error: `HTTP ${status}: ${beginningOf(typeof output === 'string' ? output : JSON.stringify(output))}` };
}

type Head = Pick<EgressResponse, 'status' | 'headers'>;

function rawHeader({ headers }: Head, name: string): string {
  return [headers[name] ?? ''].flat()[0]?.trim() ?? '';
}

function header(head: Head, name: string): string {
  return rawHeader(head, name).toLowerCase();
}

function isMedia(head: Head): boolean {
  const media = inputMediaOf(header(head, 'content-type'));
  return media !== null && media !== 'text';
}

/** Whether the body may be a file: an image, a PDF, audio, or other bytes if it turns out not to be text. */
function isFile(head: Head): boolean {
  const { status } = head;
  if (status < 200 || status >= 300 || !['', 'identity'].includes(header(head, 'content-encoding'))) return false;
  const type = header(head, 'content-type');
  return isMedia(head) || (inputMediaOf(type) === null && /^(image|video|font|application)\//.test(type));
}

function fileIn(response: EgressResponse, redact: Redact): ReturnedFile {
  const mediaType = header(response, 'content-type');
  const [, name] = /filename="?([^";]+)/i.exec(rawHeader(response, 'content-disposition')) ?? [];
  const filename = name === undefined ? undefined : shownText(name, redact);
  const file = { content: response.body, mediaType, filename };
  return new ReturnedFile(file, { type: 'file', mediaType: shownText(mediaType, redact) });
}

function isJson(response: EgressResponse): boolean {
  return /^(application\/json|[^;]*\+json|text\/json)\s*(;|$)/.test(header(response, 'content-type'));
}

/** Null if the bytes are not plain UTF-8 text: compressed although we did not ask for that, an image, another charset. */
function textOf(response: EgressResponse): string | null {
  if (!['', 'identity'].includes(header(response, 'content-encoding'))) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(response.body);
  } catch {
    return null;
  }
}
