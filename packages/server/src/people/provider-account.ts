// Who an OpenID Connect provider says a person is: the subject of its ID token, at the issuer of the token. better-auth has verified the
// token's signature, issuer, audience, nonce, and its expiry if it has one.
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import type { Log } from '../lib/log.ts';
import { storableText } from '../lib/text.ts';
import { PROVIDER_ID } from './auth-names.ts';

/** By OpenID Connect Core 1.0, section 2. */
const MAX_SUBJECT = 255;

/** At an issuer, the subject never means anyone else. */
export interface ProviderAccount {
  readonly issuer: string;
  readonly subject: string;
}

/**
 * Throws for an ID token that is missing or not for this client alone, and for a profile that is another person's. better-auth takes the
 * profile from the provider's endpoint if the token has no email, and asks there as well if there is no token.
 */
export function accountOf(
  idToken: string | undefined,
  profile: Readonly<Record<string, unknown>>,
  clientId: string,
): ProviderAccount {
  if (idToken === undefined) throw new Error('The provider sent no ID token');
  const { iss, sub, aud, azp, exp } = claimsOf(idToken);
  if (!iss || exp === undefined) throw new Error('The ID token lacks iss or exp');
  if (!sub || sub.length > MAX_SUBJECT || storableText(sub) !== sub) throw new Error('The ID token lacks a valid sub');
  const isOnlyOurs = azp === undefined ? [aud].flat().length === 1 : azp === clientId;
  if (!isOnlyOurs) throw new Error('The ID token was issued to another client');
  if (profile.sub !== sub) throw new Error('The profile is of another person than the ID token');
  return { issuer: iss, subject: sub };
}

interface Claims {
  iss?: string;
  sub?: string;
  aud?: string | string[];
  azp?: string;
  exp?: number;
}

/** The claims of a token that is verified already. */
export function claimsOf(idToken: string): Claims {
  return JSON.parse(Buffer.from(idToken.split('.')[1] ?? '', 'base64url').toString()) as Claims;
}

/**
 * False if a person has an account with this subject at another issuer, as after a change of the provider: ids of people are often
 * numbers, which mean others there. An account of the previous release gets the issuer of its next sign-in.
 */
export async function isOfIssuer(
  db: Db,
  log: Pick<Log, 'warn'>,
  { issuer, subject }: ProviderAccount,
): Promise<boolean> {
  await db.execute(sql`
    update accounts set issuer = ${issuer}
    where provider_id = ${PROVIDER_ID} and account_id = ${subject} and issuer is null`);
  const [account] = await db.query<{ issuer: string }>(sql`
    select issuer from accounts where provider_id = ${PROVIDER_ID} and account_id = ${subject}`);
  if (!account || account.issuer === issuer) return true;
  log.warn({ issuer, accountIssuer: account.issuer }, 'an id of the provider belongs to an account of another issuer');
  return false;
}
