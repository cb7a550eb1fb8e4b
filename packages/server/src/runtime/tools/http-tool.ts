// Runs a call of an `http` tool: one request, built from its author's template, and what its answer tells the model.
//
//   2xx             the body: a JSON value where the answer is JSON, else text; null where there is none
//   anything else   an error with the status and the body's beginning
//
// A secret goes only to a host on its own list. A server that gives one back in its answer (echoes, error pages that show
// the request) does not give it to the model: it is taken out of the answer before anything else looks at it.
import type { HttpTool } from '@signalbox/contract';
import type { Egress, EgressResponse } from '../../egress/egress.ts';
import { EgressError, type EgressErrorKind } from '../../egress/errors.ts';
import { mayGoTo, type OpenedSecret, openSecrets } from '../../environments/secrets.ts';
import { storableText } from '../../lib/text.ts';
import type { Platform } from '../../platform.ts';
import { parseJson } from '../json.ts';
import { createRedaction, type Redact } from './redact.ts';
import { type RenderedRequest, renderRequest, secretNames, TemplateError } from './template.ts';
import type { RunTool, ToolOutcome } from './tool.ts';

/** Many times what a model can read at once. */
const ANSWER_MAX_BYTES = 1024 * 1024;
const ERROR_MAX_CHARACTERS = 2048;
const DEFAULT_TIMEOUT_SECONDS = 30;

/** How an exchange can end after the request was sent. */
const MAY_HAVE_HAD_ITS_EFFECT: ReadonlySet<EgressErrorKind> = new Set(['timeout', 'reset', 'aborted', 'protocol']);

export function createHttpTool(platform: Pick<Platform, 'db' | 'vault' | 'egress'>): RunTool {
  return async (run, signal) => {
    signal.throwIfAborted();
    const tool = run.tool.source;
    if (tool.type !== 'http') throw new TypeError(`${run.tool.name} is not an http tool`);
    const names = secretNames(tool.request);
    const secrets = await openSecrets(platform, run.organizationId, run.environment, names).catch(() => null);
    signal.throwIfAborted();
    if (secrets === null) return { error: `Nothing was sent: ${list(names)} could not be read.` };
    const missing = names.filter((name) => !secrets.has(name));
    if (missing.length > 0) return { error: `Nothing was sent: the Environment has no ${list(missing)}.` };

    const values = Object.fromEntries([...secrets].map(([name, { value }]) => [name, value]));
    const request = render(tool, run.input, values);
    if (request instanceof TemplateError) return { error: `Nothing was sent: ${request.message}.` };
    const refused = notAllowed(secrets, new URL(request.url));
    if (refused.length > 0) return { error: `Nothing was sent: ${list(refused)} may not be sent to this host.` };
    return outcomeOf(await send(platform.egress, run.operationId, tool, request, signal), createRedaction(values));
  };
}

function list(names: readonly string[]): string {
  return `${names.length === 1 ? 'secret' : 'secrets'} ${names.join(', ')}`;
}

function render(
  { request }: HttpTool,
  input: unknown,
  secrets: Record<string, string>,
): RenderedRequest | TemplateError {
  try {
    return renderRequest(request, { input, secrets });
  } catch (error) {
    if (error instanceof TemplateError) return error;
    throw error;
  }
}

function notAllowed(secrets: ReadonlyMap<string, OpenedSecret>, url: URL): string[] {
  return [...secrets].filter(([, { allowedHosts }]) => !mayGoTo(allowedHosts, url)).map(([name]) => name);
}

async function send(
  egress: Egress,
  operationId: string,
  { timeoutSeconds = DEFAULT_TIMEOUT_SECONDS }: HttpTool,
  { method, url, headers, body }: RenderedRequest,
  signal: AbortSignal,
): Promise<EgressResponse | EgressError> {
  // The service's promise to the tool's server, so neither template nor model writes this one.
  const own = Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'idempotency-key');
  try {
    return await egress.request({
      method,
      url,
      headers: { 'User-Agent': 'Signalbox', ...Object.fromEntries(own), 'Idempotency-Key': operationId },
      body,
      timeoutMs: timeoutSeconds * 1000,
      maxResponseBytes: ANSWER_MAX_BYTES,
      signal,
    });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof EgressError) return error;
    throw error;
  }
}

function outcomeOf(response: EgressResponse | EgressError, redact: Redact): ToolOutcome {
  if (response instanceof EgressError) {
    const effect = MAY_HAVE_HAD_ITS_EFFECT.has(response.kind) ? ' The request may have had its effect.' : '';
    return { error: `${response.message}.${effect}` };
  }
  const { status, body, truncated } = response;
  const ok = status >= 200 && status < 300;
  if (truncated)
    return { error: `HTTP ${status}: the answer is longer than ${ANSWER_MAX_BYTES} bytes, so it was not read.` };
  if (body.length === 0) return ok ? { output: null } : { error: `HTTP ${status}` };

  const text = textOf(response);
  if (text === null) return { error: `HTTP ${status}: the answer is not text in UTF-8, so it was not read.` };
  // What can't be stored is left out first: a secret with a NUL in it would not be found, and then be whole again.
  const shown = redact(storableText(text));
  const value = isJson(response) ? parseJson(shown) : undefined;
  const answer = value === undefined ? shown : redactStrings(value, redact);
  if (ok) return { output: answer };
  const beginning = (typeof answer === 'string' ? answer : JSON.stringify(answer)).slice(0, ERROR_MAX_CHARACTERS);
  return { error: `HTTP ${status}: ${beginning.toWellFormed()}` };
}

function header({ headers }: EgressResponse, name: string): string {
  return [headers[name] ?? ''].flat()[0]?.trim().toLowerCase() ?? '';
}

function isJson(response: EgressResponse): boolean {
  return /^(application\/json|[^;]*\+json|text\/json)\s*(;|$)/.test(header(response, 'content-type'));
}

/** Null where the bytes are something else: compressed although we did not ask for that, an image, another charset. */
function textOf(response: EgressResponse): string | null {
  if (!['', 'identity'].includes(header(response, 'content-encoding'))) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(response.body);
  } catch {
    return null;
  }
}

/** Once more in the strings of a JSON value, where escapes that no form lists are undone. */
function redactStrings(value: unknown, redact: Redact): unknown {
  if (typeof value === 'string') return redact(storableText(value));
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => redactStrings(item, redact));
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [redact(storableText(name)), redactStrings(item, redact)]),
  );
}
