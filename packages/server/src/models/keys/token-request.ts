// One request for a token, and how its failures are classified. Nothing of the request is in any of them.

import type { OrganizationEgress } from '../../egress/egress.ts';
import type { EgressRequest, EgressResponse } from '../../egress/exchange.ts';
import { parseJson } from '../../lib/json/json.ts';
import { toModelFailure } from '../failure/provider-failure.ts';
import { ModelFailure } from '../model/model.ts';
import { isRecord } from '../model/provider-error.ts';

const TIMEOUT_MS = 10_000;
export const RESPONSE_MAX_BYTES = 64 * 1024;

/** The headers of a request whose body is a form. */
export const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };

/** Who issues the token, and what it is requested with: "Google", "the secret KEY of the environment production". */
export interface TokenIssuer {
  readonly name: string;
  readonly label: string;
  /** What an operator can do, by the status of the refusal. */
  readonly advice?: Readonly<Record<number, string>>;
  /** Refusals after which a later request may succeed, besides those that say so everywhere. */
  readonly later?: readonly number[];
}

/** The body of the response. Throws `model_key_rejected` if the issuer refuses the key, or as calls of a model do. */
export async function requestToken(
  egress: OrganizationEgress,
  issuer: TokenIssuer,
  request: Pick<EgressRequest, 'url' | 'method' | 'headers' | 'body'>,
): Promise<string> {
  const response = await send(egress, request);
  requireSuccess(response, issuer);
  return response.body.toString('utf8');
}

/** Throws as `requestToken` if the status is none of success. */
export function requireSuccess(
  { status, body }: EgressResponse,
  { name, label, advice, later = [] }: TokenIssuer,
): void {
  if (status >= 200 && status < 300) return;
  const todo = advice?.[status] === undefined ? '' : `: ${advice[status]}`;
  const shown = `HTTP ${status}${errorIn(body.toString('utf8'))}${todo}`;
  if (status === 429 || status === 408 || status >= 500 || later.includes(status))
    throw new ModelFailure('model_unavailable', `${name} gave no token for ${label}: ${shown}`, { retryable: true });
  // A service that gives advice gets no key that it could reject.
  const what = advice ? 'gave no token for' : 'rejected';
  throw new ModelFailure('model_key_rejected', `${name} ${what} ${label}: ${shown}`, { retryable: false });
}

async function send(egress: OrganizationEgress, request: Parameters<typeof requestToken>[2]): Promise<EgressResponse> {
  try {
    const limits = { timeoutMs: TIMEOUT_MS, maxResponseBytes: RESPONSE_MAX_BYTES, repeatable: true };
    return await egress.request({ ...request, ...limits });
  } catch (error) {
    throw toModelFailure(error, false);
  }
}

/**
 * Codes of RFC 6749, 5.2, of Entra (`AADSTS700021`) and of AWS, which responds in XML. Descriptions name accounts, and are not shown.
 */
function errorIn(body: string): string {
  const { error, error_codes: numbers } = recordIn(body);
  const [, exception] = /<Code>(\w{1,80})<\/Code>/.exec(body) ?? [];
  const codes = [
    ...(typeof error === 'string' && /^[a-z_]{1,40}$/.test(error) ? [error] : []),
    ...(Array.isArray(numbers) ? numbers.filter(Number.isSafeInteger).map((number) => `AADSTS${number}`) : []),
    ...(exception === undefined ? [] : [exception]),
  ].slice(0, 3);
  return codes.length === 0 ? '' : ` (${codes.join(', ')})`;
}

/** The object that the text is in JSON; an empty one if it is none. */
export function recordIn(text: string): Readonly<Record<string, unknown>> {
  const json = parseJson(text);
  return isRecord(json) ? json : {};
}
