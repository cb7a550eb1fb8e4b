// Runs a call of an `http` tool: sends one request, built from its author's template, and turns the response into the result.
//
//   2xx             the body: a JSON value if the response is JSON, text, or a file; null if it is empty
//   anything else   an error with the status and the beginning of the body
//
// A secret is only sent to hosts on its own list. A server may return it in its response (echoes, error pages that show the
// request), but the model never gets it: secrets are redacted before any other code reads the response.
import type { HttpTool } from '@signalbox/contract';
import { EgressError } from '../../egress/errors.ts';
import type { OpenResponse, ResponseHead } from '../../egress/exchange.ts';
import { MAX_REDIRECTS, type Redirect, redirectMessage, redirectOf } from '../../egress/redirect.ts';
import { filenameIn } from '../../files/disposition.ts';
import { decodedText } from '../../files/media-type.ts';
import { parseJson } from '../../lib/json/json.ts';
import { holdMemory } from '../../lib/memory.ts';
import type { Platform } from '../../platform.ts';
import { type PreparedRequest, prepareRequest } from '../request/request.ts';
import type { Redact } from '../tool/redact.ts';
import { beginningOf, shownJson, shownText, withoutResponse } from '../tool/result.ts';
import { ReturnedFile, storeFiles } from '../tool/returned-file.ts';
import { storedResponse } from '../tool/stored-response.ts';
import type { RunTool, SentRequest, ToolOutcome, ToolRun } from '../tool/tool.ts';
import { header, isCompressed, lengthOf, type Received, rawHeader, receive, TooLong } from './http-response.ts';

const DEFAULT_TIMEOUT_SECONDS = 30;
/** How much of a request's body is shown to people. */
const SHOWN_BODY_MAX_CHARACTERS = 64 * 1024;

interface Head extends ResponseHead {
  /** The redirect that was not followed. */
  readonly redirect: Redirect | undefined;
}

type Response = OpenResponse & Head;

export function createHttpTool(
  platform: Pick<Platform, 'db' | 'vault' | 'egress' | 'files' | 'memory' | 'clock'>,
): RunTool {
  return async (run, signal) => {
    signal.throwIfAborted();
    const tool = run.tool.source;
    if (tool.type !== 'http') throw new TypeError(`${run.tool.name} is not an http tool`);
    const given = { input: run.input, inputSchema: run.tool.inputSchema };
    const request = await prepareRequest(platform, run, tool.request, given);
    signal.throwIfAborted();
    if (typeof request === 'string') return { error: `Nothing was sent: ${request}.` };
    run.onRequest?.(sentRequest(request));
    const held = run.held ?? holdMemory(platform.memory, run.organizationId, signal);
    try {
      const response = await send(platform, run, tool, request, signal);
      try {
        return await read(run, response, request.redact, () => receive(response, held, platform.files.own.pieceBytes));
      } finally {
        response.body.destroy();
      }
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof EgressError) return withoutResponse(error);
      throw error;
    } finally {
      if (!run.held) held.release();
    }
  };
}

/** Follows redirects within the server. Throws `EgressError`. */
async function send(
  { egress, clock }: Pick<Platform, 'egress' | 'clock'>,
  { organizationId, operationId, tool: { repeatable } }: ToolRun,
  { timeoutSeconds = DEFAULT_TIMEOUT_SECONDS }: HttpTool,
  request: PreparedRequest,
  signal: AbortSignal,
): Promise<Response> {
  // The key is the service's promise to the tool's server, so neither the template nor the model can set it.
  const own = Object.entries(request.headers).filter(([name]) => name.toLowerCase() !== 'idempotency-key');
  const headers = { 'User-Agent': 'Signalbox', ...Object.fromEntries(own), 'Idempotency-Key': operationId };
  const { method, body, mayReceive } = request;
  const { open } = egress.of(organizationId);
  let timeoutMs = timeoutSeconds * 1000;
  for (let { url } = request, followed = 0; ; followed += 1) {
    const sentAt = clock.now().getTime();
    const response = await open({ method, url, headers, body, timeoutMs, signal, repeatable });
    const redirect = redirectOf({ url, method, mayReceive }, response.status, rawHeader(response, 'location'));
    if (redirect?.url === undefined || followed === MAX_REDIRECTS) return { ...response, redirect };
    response.body.destroy();
    timeoutMs = Math.max(timeoutMs - (clock.now().getTime() - sentAt), 1);
    url = redirect.url;
  }
}

function sentRequest({ method, url, headers, body, redact }: PreparedRequest): SentRequest {
  return {
    method,
    url: shownText(url, redact),
    headers: Object.entries(headers).map(([name, value]) => [name, shownText(value, redact)]),
    body: body === null ? null : shownText(body, redact).slice(0, SHOWN_BODY_MAX_CHARACTERS).toWellFormed(),
  };
}

/** Reads the response, stores its file, and returns the result. Throws `EgressError`. */
async function read(
  { onResponse, saveFile }: ToolRun,
  head: Head,
  redact: Redact,
  receiveBody: () => Promise<Received>,
): Promise<ToolOutcome> {
  const { status } = head;
  const report = (bytes: number, text?: string) => onResponse?.(storedResponse(head, bytes, redact, text));
  try {
    const received = await receiveBody();
    if (received.content) {
      return await storeFiles({ output: fileIn(head, received.content, redact) }, redact, saveFile, report);
    }
    const text = textOf(head, received.text);
    // The result of a call has the whole body unless the call failed.
    report(received.text.length, isSuccess(head) || received.text.length === 0 ? undefined : (text ?? undefined));
    return textOutcome(head, received.text, text, redact);
  } catch (error) {
    if (!(error instanceof TooLong)) throw error;
    report(error.bytes);
    return { error: `HTTP ${status}: ${error.message}.` };
  }
}

function textOutcome(head: Head, body: Buffer, text: string | null, redact: Redact): ToolOutcome {
  const { status, redirect } = head;
  if (redirect) return { error: redirectMessage(status, redirect, shownText(redirect.shown, redact)) };
  if (body.length === 0) return isSuccess(head) ? { output: null } : { error: `HTTP ${status}` };
  if (text === null) return { error: `HTTP ${status}: the response is not text, so it was not read.` };
  const shown = shownText(text, redact);
  const value = isJson(head) ? parseJson(shown) : undefined;
  // Without an escape, the strings of the value are as they are in the text.
  const output = value === undefined ? shown : shown.includes('\\') ? shownJson(value, redact) : value;
  if (isSuccess(head)) return { output };
  return { error: `HTTP ${status}: ${beginningOf(typeof output === 'string' ? output : JSON.stringify(output))}` };
}

function isSuccess({ status }: ResponseHead): boolean {
  return status >= 200 && status < 300;
}

function fileIn(head: ResponseHead, content: AsyncIterable<Uint8Array>, redact: Redact): ReturnedFile {
  const mediaType = header(head, 'content-type');
  const name = filenameIn(rawHeader(head, 'content-disposition'));
  const filename = name === undefined ? undefined : shownText(name, redact);
  const length = lengthOf(head);
  const description = {
    type: 'file',
    mediaType: shownText(mediaType, redact),
    ...(length !== undefined && { bytes: length }),
  };
  return new ReturnedFile({ content, mediaType, filename, length }, description);
}

function isJson(head: ResponseHead): boolean {
  return /^(application\/json|[^;]*\+json|text\/json)\s*(;|$)/.test(header(head, 'content-type'));
}

/** Null if the bytes are not plain text: compressed, an image. */
function textOf(head: ResponseHead, body: Buffer): string | null {
  return isCompressed(head) ? null : decodedText(body, header(head, 'content-type'));
}
