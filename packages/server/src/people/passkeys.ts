// Passkeys: a person signs in with a key that a device or a security key keeps, without a password.
//
// Each dialog of the browser signs a challenge. It is valid once, for five minutes, and only for the browser that requested it: the
// browser has a token in a cookie, and `verifications` has the token's hash with the challenge. A response counts only if it comes
// from this console (origin and host), and if the device asked for a PIN, fingerprint or face: a passkey alone opens the account, and
// someone who finds a security key must not get in.
//
// The origin of a device is not verified (attestation): certificates in a response are refused before they are read, because the
// addresses of revocation lists in them would be requested past the egress rules.
import { randomBytes } from 'node:crypto';
import type {
  AuthenticationResponseJSON,
  AuthenticatorTransport,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server';
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import { hashSecret } from '../keys/secret.ts';
import { ApiError } from '../lib/api-error.ts';
import { bytesOfUuid, newUuid } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import { cookiePrefixOf } from './auth-names.ts';
import { readCookie, setCookie } from './cookies.ts';
import type { SignIn, Visitor } from './identity.ts';
import { recordInTransaction } from './records.ts';
import { requireWayIn } from './sign-ins.ts';

type Parts = Pick<Platform, 'db' | 'clock' | 'publicUrl'>;

/** What the browser's dialog takes, and the cookie that binds the response to this browser. */
export interface Prompt<Options> {
  options: Options;
  setCookie: string;
}

/** A passkey that signed a challenge, and its new counter. */
export interface UsedPasskey {
  passkeyId: string;
  userId: string;
  counter: number;
}

interface Challenge {
  purpose: 'add' | 'signIn';
  challenge: string;
  /** The ID of the person who adds a passkey. */
  userId?: string;
}

const CHALLENGE_SECONDS = 300;
// EdDSA, ES256 and RS256: every supported Node, and so every node of an installation, can verify these.
const ALGORITHMS = [-8, -7, -257];
// The column is a signed integer; a device counts to twice as far.
const MAX_COUNTER = 2 ** 31 - 1;
const MAX_CREDENTIAL_ID_LENGTH = 1364;
const MAX_TRANSPORTS = 10;

// Loaded on first use: few people add passkeys or sign in with them.
const webAuthn = () => import('@simplewebauthn/server');

export async function promptForNewPasskey(
  platform: Parts,
  { userId, name, email }: SignIn,
): Promise<Prompt<PublicKeyCredentialCreationOptionsJSON>> {
  const { generateRegistrationOptions } = await webAuthn();
  const existing = await platform.db.query<{ id: string; transports: string | null }>(
    sql`select credential_id as id, transports from passkeys where user_id = ${userId}`,
  );
  const options = await generateRegistrationOptions({
    rpName: 'Signalbox',
    rpID: platform.publicUrl().hostname,
    userID: new Uint8Array(bytesOfUuid(userId)),
    userName: email,
    userDisplayName: name,
    attestationType: 'none',
    // A device that already has a passkey for this person adds no second one.
    excludeCredentials: existing.map(({ id, transports }) => ({ id, transports: transportsOf(transports) })),
    // The page that signs in does not know who is there, so the device has to keep the passkey and its user.
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    supportedAlgorithmIDs: ALGORITHMS,
  });
  return {
    options,
    setCookie: await storeChallenge(platform, { purpose: 'add', challenge: options.challenge, userId }),
  };
}

export async function promptForSignIn(platform: Parts): Promise<Prompt<PublicKeyCredentialRequestOptionsJSON>> {
  const { generateAuthenticationOptions } = await webAuthn();
  const options = await generateAuthenticationOptions({
    rpID: platform.publicUrl().hostname,
    userVerification: 'required',
  });
  return { options, setCookie: await storeChallenge(platform, { purpose: 'signIn', challenge: options.challenge }) };
}

/** Adds the passkey of a browser's response. Throws 400 `invalid_request` if the response is not valid. */
export async function addPasskey(
  platform: Parts,
  { userId }: SignIn,
  visitor: Visitor,
  given: { response: unknown; name?: string },
): Promise<void> {
  const taken = await takeChallenge(platform, visitor, 'add');
  if (taken?.userId !== userId) throw new ApiError('invalid_request', 'Adding the passkey took too long. Try again.');
  const { credential, aaguid, ...device } = await verifyNewPasskey(platform, taken.challenge, given.response);
  const now = platform.clock.now();
  await platform.db.transaction(async (tx) => {
    const added = await tx.execute(sql`
      insert into passkeys (id, user_id, name, public_key, credential_id, counter, device_type, backed_up, transports, aaguid,
        created_at)
      values (${newUuid()}, ${userId}, ${given.name?.trim() || null},
        ${Buffer.from(credential.publicKey).toString('base64')}, ${credential.id},
        ${Math.min(credential.counter, MAX_COUNTER)}, ${device.credentialDeviceType}, ${device.credentialBackedUp},
        ${transportsText(credential.transports)}, ${aaguid}, ${now})
      on conflict (credential_id) do nothing`);
    if (added === 0) throw new ApiError('conflict', 'This passkey was already added.');
    await recordInTransaction(tx, now, userId, visitor, { type: 'user.passkey_added' });
  });
}

async function verifyNewPasskey(platform: Parts, challenge: string, response: unknown) {
  const { verifyRegistrationResponse } = await webAuthn();
  const { decodeAttestationObject, isoBase64URL } = await import('@simplewebauthn/server/helpers');
  const publicUrl = platform.publicUrl();
  try {
    const given = response as RegistrationResponseJSON;
    const attestation = decodeAttestationObject(isoBase64URL.toBuffer(given.response.attestationObject));
    const format = attestation.get('fmt');
    const isWithoutCertificates =
      format === 'none' || (format === 'packed' && attestation.get('attStmt').get('x5c') === undefined);
    if (!isWithoutCertificates) throw new Error('certificates are not read');
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response: given,
      expectedChallenge: challenge,
      expectedOrigin: publicUrl.origin,
      expectedRPID: publicUrl.hostname,
      supportedAlgorithmIDs: ALGORITHMS,
    });
    if (verified && registrationInfo.credential.id.length <= MAX_CREDENTIAL_ID_LENGTH) return registrationInfo;
  } catch {
    // The library throws for everything that is wrong with a response, also if it is not one at all.
  }
  throw new ApiError(
    'invalid_request',
    'The device’s response is not valid for this console, or the device did not verify a PIN, fingerprint or face.',
  );
}

/** The passkey that signed a response; undefined if the response is not valid. */
export async function verifyPasskey(
  platform: Parts,
  visitor: Visitor,
  response: unknown,
): Promise<UsedPasskey | undefined> {
  const { id } = (response ?? {}) as { id?: unknown };
  const taken = await takeChallenge(platform, visitor, 'signIn');
  if (!taken || typeof id !== 'string') return undefined;
  const [passkey] = await platform.db.query<{ id: string; userId: string; publicKey: string; counter: number }>(sql`
    select id, user_id as "userId", public_key as "publicKey", counter from passkeys where credential_id = ${id}`);
  if (!passkey) return undefined;
  const { verifyAuthenticationResponse } = await webAuthn();
  const publicUrl = platform.publicUrl();
  try {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: response as AuthenticationResponseJSON,
      expectedChallenge: taken.challenge,
      expectedOrigin: publicUrl.origin,
      expectedRPID: publicUrl.hostname,
      credential: {
        id,
        publicKey: new Uint8Array(Buffer.from(passkey.publicKey, 'base64')),
        counter: passkey.counter,
      },
    });
    if (!verified) return undefined;
    const counter = Math.min(authenticationInfo.newCounter, MAX_COUNTER);
    return { passkeyId: passkey.id, userId: passkey.userId, counter };
  } catch {
    // As above.
    return undefined;
  }
}

/**
 * Stores the counter of a passkey after its sign-in has begun. False if the passkey was removed meanwhile: the removal did not see the
 * new sign-in, so the caller has to end it.
 */
export async function notePasskeyUse(db: Db, { passkeyId, counter }: UsedPasskey): Promise<boolean> {
  const changed = await db.execute(sql`
    update passkeys set counter = greatest(counter, ${counter}) where id = ${passkeyId}`);
  return changed > 0;
}

interface ListedPasskey {
  id: string;
  name: string | null;
  createdAt: Date | null;
}

/** Newest first. */
export function listPasskeys(db: Db, userId: string): Promise<ListedPasskey[]> {
  return db.query<ListedPasskey>(sql`
    select id, name, created_at as "createdAt" from passkeys where user_id = ${userId} order by id desc`);
}

/** Throws 404 `not_found` for another person's passkey, and 409 `conflict` for the last sign-in method. */
export async function removePasskey(
  { db, clock }: Parts,
  { userId }: SignIn,
  visitor: Visitor,
  passkeyId: string,
): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.query(sql`select 1 from users where id = ${userId} for no key update`);
    const removed = await tx.execute(sql`delete from passkeys where id = ${passkeyId} and user_id = ${userId}`);
    if (removed === 0) throw new ApiError('not_found', 'You have no such passkey.');
    await requireWayIn(tx, userId);
    await recordInTransaction(tx, clock.now(), userId, visitor, { type: 'user.passkey_removed' });
  });
}

/** Returns the cookie with its token. */
async function storeChallenge({ db, clock, publicUrl }: Parts, challenge: Challenge): Promise<string> {
  const token = randomBytes(32).toString('base64url');
  const now = clock.now();
  const expiresAt = new Date(now.getTime() + CHALLENGE_SECONDS * 1000);
  await db.query(sql`
    insert into verifications (id, identifier, value, expires_at, created_at, updated_at)
    values (${newUuid()}, ${identifierOf(token)}, ${JSON.stringify(challenge)}, ${expiresAt}, ${now}, ${now})`);
  return setCookie(publicUrl(), cookieName(publicUrl()), token, CHALLENGE_SECONDS);
}

/** The challenge that this browser requested for the purpose. It can't be taken again. */
async function takeChallenge(
  { db, clock, publicUrl }: Parts,
  { cookie }: Visitor,
  purpose: Challenge['purpose'],
): Promise<Challenge | undefined> {
  const token = readCookie(cookie, cookieName(publicUrl()));
  if (token === undefined) return undefined;
  const [row] = await db.query<{ value: string }>(sql`
    delete from verifications where identifier = ${identifierOf(token)} and expires_at > ${clock.now()}
    returning verifications.value`);
  const challenge = row && (JSON.parse(row.value) as Challenge);
  return challenge?.purpose === purpose ? challenge : undefined;
}

const cookieName = (publicUrl: URL) => `${cookiePrefixOf(publicUrl)}.passkey`;
const identifierOf = (token: string) => hashSecret(token).toString('base64url');

/** How a device is connected, as one column has it. A browser adds kinds that are not in the list yet. */
function transportsText(transports: unknown): string | null {
  if (!Array.isArray(transports)) return null;
  const known = transports.filter((one): one is string => typeof one === 'string' && /^[a-z-]{1,20}$/.test(one));
  return known.slice(0, MAX_TRANSPORTS).join(',') || null;
}

function transportsOf(text: string | null): AuthenticatorTransport[] {
  return (text ? text.split(',') : []) as AuthenticatorTransport[];
}
