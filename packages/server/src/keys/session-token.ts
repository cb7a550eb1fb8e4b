// Session tokens: a page of an end user calls with one instead of an API key.
//
//   sbt_ ‖ claims (JSON in base64url) ‖ . ‖ signature (HMAC-SHA256 in base64url)
//
// Nothing about a token is stored. It names its key and the secret that the key had: authenticate.ts looks the key up for every request,
// so a token ends when its key is deleted, rotated or expires. The signature is checked before anything else is read, so a forged token
// costs one hash. Keys to sign with are derived from the master keys: the first signs, all verify.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { longestToken, type TokenScope, tokenScopes } from '@signalbox/contract';
import type { TokenReach } from '../lib/context.ts';
import { bytesOfUuid, uuidOfBytes } from '../lib/ids.ts';
import type { Vault } from '../vault/vault.ts';

/** What a token says. */
export interface SessionTokenClaims extends TokenReach {
  readonly organizationId: string;
  /** The key that created it. */
  readonly keyId: string;
  /** The tag of the key's secret (`secretTagOf`). */
  readonly secretTag: string;
}

/** Short names: the token is in a header of every request. */
interface Wire {
  o: string;
  k: string;
  h: string;
  s?: string;
  a: string;
  e: string;
  u?: [id: string, name?: string];
  /** The positions of its scopes in the contract's list. */
  c: number[];
  /** In seconds. */
  x: number;
}

export const TOKEN_PREFIX = 'sbt_';
const PATTERN = /^(sbt_[\w-]{40,})\.([\w-]{43})$/;
const TAG_BYTES = 12;

export function signSessionToken(vault: Vault, claims: SessionTokenClaims): string {
  const { endUser, sessionId } = claims;
  const wire: Wire = {
    o: pack(claims.organizationId),
    k: pack(claims.keyId),
    h: claims.secretTag,
    ...(sessionId !== null && { s: pack(sessionId) }),
    a: pack(claims.agentId),
    e: claims.environment,
    ...(endUser && { u: endUser.name === undefined ? [endUser.id] : [endUser.id, endUser.name] }),
    c: claims.scopes.map((scope) => tokenScopes.indexOf(scope)),
    x: Math.floor(claims.expiresAt.getTime() / 1000),
  };
  const body = TOKEN_PREFIX + Buffer.from(JSON.stringify(wire)).toString('base64url');
  return `${body}.${signatureOf(vault.derive('session_token'), body)}`;
}

/** What a token says if this service signed it; it may have expired. */
export function readSessionToken(vault: Vault, token: string): SessionTokenClaims | undefined {
  const [, body, signature] = (token.length <= longestToken && PATTERN.exec(token)) || [];
  if (body === undefined || signature === undefined) return undefined;
  const given = Buffer.from(signature);
  const isOurs = vault
    .deriveAll('session_token')
    .map((key) => timingSafeEqual(Buffer.from(signatureOf(key, body)), given))
    .includes(true);
  if (!isOurs) return undefined;
  const wire = JSON.parse(Buffer.from(body.slice(TOKEN_PREFIX.length), 'base64url').toString()) as Wire;
  const [id, name] = wire.u ?? [];
  return {
    organizationId: unpack(wire.o),
    keyId: unpack(wire.k),
    secretTag: wire.h,
    sessionId: wire.s === undefined ? null : unpack(wire.s),
    agentId: unpack(wire.a),
    environment: wire.e,
    endUser: id === undefined ? null : { id, ...(name !== undefined && { name }) },
    // A newer node may know more scopes.
    scopes: wire.c.map((at) => tokenScopes[at]).filter((scope): scope is TokenScope => scope !== undefined),
    expiresAt: new Date(wire.x * 1000),
  };
}

/** Identifies a secret of a key in its tokens, and proves nothing: it is a hash of the stored hash. */
export function secretTagOf(secretHash: Uint8Array): string {
  return createHash('sha256').update(secretHash).digest().subarray(0, TAG_BYTES).toString('base64url');
}

function signatureOf(key: Buffer, body: string): string {
  return createHmac('sha256', key).update(body).digest('base64url');
}

function pack(uuid: string): string {
  return bytesOfUuid(uuid).toString('base64url');
}

function unpack(text: string): string {
  return uuidOfBytes(Buffer.from(text, 'base64url'));
}
