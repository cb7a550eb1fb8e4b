// The key of a Google service account, in JSON. It signs a request for a token (RFC 7523), and is sent nowhere.
import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import { cloudUrlForm, isServerOf } from '@signalbox/contract';
import type { OrganizationEgress } from '../../egress/egress.ts';
import { parseJson } from '../../lib/json/json.ts';
import { ModelFailure } from '../model/model.ts';
import { isRecord } from '../model/provider-error.ts';
import { type AccessToken, tokenIn } from './access-tokens.ts';
import { FORM, requestToken } from './token-request.ts';

export interface ServiceAccount {
  readonly email: string;
  readonly privateKey: KeyObject;
  readonly keyId: string | undefined;
  /** Where it gets tokens. */
  readonly tokenUrl: URL;
}

const TOKEN_URL = 'https://oauth2.googleapis.com/token';
/** The scope of tokens for calls at Google Cloud. */
export const SCOPE = 'https://www.googleapis.com/auth/cloud-platform';
const LIFETIME_SECONDS = 3600;

/** `label`: the secret that has it. Throws `model_key_rejected`, which names what is wrong and shows none of it. */
export function parseServiceAccount(text: string, label: string): ServiceAccount {
  const refuse = (why: string) =>
    new ModelFailure('model_key_rejected', `${capital(label)} ${why}`, { retryable: false });
  const json = parseJson(text);
  if (!isRecord(json)) throw refuse('is neither an API key nor the JSON of a service account’s key');
  const { type, client_email: email, private_key: pem, private_key_id: keyId, token_uri: tokenUri = TOKEN_URL } = json;
  if (type !== 'service_account') throw refuse('is JSON whose type is not "service_account"');
  if (typeof email !== 'string' || email === '') throw refuse('has no client_email');
  if (typeof pem !== 'string') throw refuse('has no private_key');
  const tokenUrl = typeof tokenUri === 'string' ? URL.parse(tokenUri) : null;
  if (tokenUrl === null) throw refuse('has a token_uri that is not a URL');
  const privateKey = keyIn(pem);
  if (privateKey?.asymmetricKeyType !== 'rsa') throw refuse('has a private_key that is not an RSA key in PEM format');
  return { email, privateKey, keyId: typeof keyId === 'string' ? keyId : undefined, tokenUrl };
}

/** The token that the key gets. Throws `model_key_rejected` if it gets none, or as calls of a model do. */
export async function accountToken(
  account: ServiceAccount,
  label: string,
  { egress, now }: { egress: OrganizationEgress; now: number },
): Promise<AccessToken> {
  const headers = { ...FORM, Accept: 'application/json' };
  const request = { method: 'POST', url: account.tokenUrl.href, headers, body: assertionOf(account, now) };
  return tokenIn(await requestToken(egress, { name: 'Google', label }, request), 'Google', now);
}

/** Throws `model_not_allowed` if the address is without a project, as for API keys. `label`: what the tokens are of. */
export function requireProject(baseUrl: URL, label: string): void {
  if (!isServerOf('vertex', baseUrl) || baseUrl.pathname.includes('/projects/')) return;
  const why = `${label}, which needs a base URL with its project: ${cloudUrlForm('vertex')}`;
  throw new ModelFailure('model_not_allowed', `The agent’s model can’t be called: ${why}`, { retryable: false });
}

/** The body of a request for a token. `now`: in milliseconds since 1970. */
function assertionOf({ email, privateKey, keyId, tokenUrl }: ServiceAccount, now: number): string {
  const issuedAt = Math.floor(now / 1000);
  const header = { alg: 'RS256', typ: 'JWT', ...(keyId !== undefined && { kid: keyId }) };
  const claims = { iss: email, scope: SCOPE, aud: tokenUrl.href, iat: issuedAt, exp: issuedAt + LIFETIME_SECONDS };
  const content = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  const signature = sign('RSA-SHA256', Buffer.from(content), privateKey).toString('base64url');
  return new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
    assertion: `${content}.${signature}`,
  }).toString();
}

/** Whether a secret may have its token requested there: from Google, or from a host that it allows. */
export function isGoogle({ href }: URL): boolean {
  return href === TOKEN_URL || href === 'https://accounts.google.com/o/oauth2/token';
}

function keyIn(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
