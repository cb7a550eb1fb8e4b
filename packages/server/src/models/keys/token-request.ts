// One request for a token, and how its failures are classified. Nothing of the request is in any of them.

import type { OrganizationEgress } from '../../egress/egress.ts';
import type { EgressRequest, EgressResponse } from '../../egress/exchange.ts';
import { parseJson } from '../../lib/json/json.ts';
import { toModelFailure } from '../failure/provider-failure.ts';
import { ModelFailure } from '../model/model.ts';
import { isRecord } from '../model/provider-error.ts';

const TIMEOUT_MS = 10_000;
const RESPONSE_MAX_BYTES = 64 * 1024;

/** Who issues the token, and what it is requested with: "Google", "the secret KEY of the environment production". */
export interface TokenIssuer {
  readonly name: string;
  readonly label: string;
}

/** The JSON of the response. Throws `model_key_rejected` if the issuer refuses the key, or as calls of a model do. */
export async function requestToken(
  egress: OrganizationEgress,
  { name, label }: TokenIssuer,
  request: Pick<EgressRequest, 'url' | 'method' | 'headers' | 'body'>,
): Promise<unknown> {
  const response = await send(egress, request);
  const { status } = response;
  const body = parseJson(response.body.toString('utf8'));
  if (status >= 200 && status < 300) return body;
  const shown = `HTTP ${status}${errorIn(body)}`;
  if (status === 429 || status === 408 || status >= 500)
    throw new ModelFailure('model_unavailable', `${name} gave no token for ${label}: ${shown}`, { retryable: true });
  throw new ModelFailure('model_key_rejected', `${name} rejected ${label}: ${shown}`, { retryable: false });
}

async function send(egress: OrganizationEgress, request: Parameters<typeof requestToken>[2]): Promise<EgressResponse> {
  try {
    const limits = { timeoutMs: TIMEOUT_MS, maxResponseBytes: RESPONSE_MAX_BYTES, repeatable: true };
    return await egress.request({ ...request, ...limits });
  } catch (error) {
    throw toModelFailure(error, false);
  }
}

/** A code of RFC 6749, 5.2. Descriptions name accounts, and are not shown. */
function errorIn(body: unknown): string {
  const { error } = isRecord(body) ? body : {};
  return typeof error === 'string' && /^[a-z_]{1,40}$/.test(error) ? ` (${error})` : '';
}
