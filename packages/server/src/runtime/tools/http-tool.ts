// Runs a call of an `http` tool: sends one request, built from its author's template, and turns the response into the result.
//
//   2xx             the body: a JSON value if the response is JSON, otherwise text; null if it is empty
//   anything else   an error with the status and the beginning of the body
//
// A secret is only sent to hosts on its own list. A server may return it in its response (echoes, error pages that show the
// request), but the model never gets it: secrets are redacted before any other code reads the response.
import type { HttpTool } from '@signalbox/contract';
import type { Egress, EgressResponse } from '../../egress/egress.ts';
import { EgressError } from '../../egress/errors.ts';
import { parseJson } from '../../lib/json.ts';
import type { Platform } from '../../platform.ts';
import type { Redact } from './redact.ts';
import { prepareRequest } from './request.ts';
import { beginningOf, RESPONSE_MAX_BYTES, shownJson, shownText, TOO_LONG, withoutResponse } from './result.ts';
import type { RenderedRequest } from './template.ts';
import type { RunTool, ToolOutcome } from './tool.ts';

const DEFAULT_TIMEOUT_SECONDS = 30;

export function createHttpTool(platform: Pick<Platform, 'db' | 'vault' | 'egress'>): RunTool {
  return async (run, signal) => {
    signal.throwIfAborted();
    const tool = run.tool.source;
    if (tool.type !== 'http') throw new TypeError(`${run.tool.name} is not an http tool`);
    const given = { input: run.input, inputSchema: run.tool.inputSchema };
    const request = await prepareRequest(platform, run, tool.request, given);
    signal.throwIfAborted();
    if (typeof request === 'string') return { error: `Nothing was sent: ${request}.` };
    return httpOutcome(await send(platform.egress, run.operationId, tool, request, signal), request.redact);
  };
}

async function send(
  egress: Egress,
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
      maxResponseBytes: RESPONSE_MAX_BYTES,
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
  if (truncated) return { error: `HTTP ${status}: the response is ${TOO_LONG}.` };
  if (status >= 300 && status < 400) return { error: `HTTP ${status}: redirects are not followed.` };
  if (body.length === 0) return ok ? { output: null } : { error: `HTTP ${status}` };

  const text = textOf(response);
  if (text === null) return { error: `HTTP ${status}: the response is not UTF-8 text, so it was not read.` };
  const shown = shownText(text, redact);
  const value = isJson(response) ? parseJson(shown) : undefined;
  const output = value === undefined ? shown : shownJson(value, redact);
  if (ok) return { output };
  return { error: `HTTP ${status}: ${beginningOf(typeof output === 'string' ? output : JSON.stringify(output))}` };
}

function header({ headers }: EgressResponse, name: string): string {
  return [headers[name] ?? ''].flat()[0]?.trim().toLowerCase() ?? '';
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
