// Encrypts secrets that the service must be able to read again: environment secrets, signing secrets, headers of destinations, stored
// responses with a secret.
//
// AES-256-GCM with a key derived (HKDF) from the master key for one purpose. The additional data binds a sealed value to its place
// (organization and name): it can't be opened anywhere else. A sealed value is
//   version (1 byte) ‖ id of the master key (4) ‖ nonce (12) ‖ tag (16) ‖ ciphertext
// and contains the id of its key, so that older keys in the list can still open it.
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';

/** `place` identifies where the value belongs. Opening requires the same place. */
export interface Vault {
  /** Fingerprints of all keys, the sealing one first: 16 bytes that identify a key without revealing it. */
  readonly fingerprints: readonly Buffer[];
  seal(purpose: Purpose, place: readonly string[], plaintext: string): Buffer;
  /** A key for another purpose than sealing, derived from the first master key. It changes if that key is replaced. */
  derive(purpose: DerivedPurpose): Buffer;
  /** The derived keys of every master key, the first one first: what one of them signed is still valid while it is in the list. */
  deriveAll(purpose: DerivedPurpose): readonly Buffer[];
  /** Throws `CannotOpen` if the value was sealed with an unknown key, for another place, or was changed. */
  open(purpose: Purpose, place: readonly string[], sealed: Buffer): string;
}

type DerivedPurpose = 'sign_in' | 'session_token' | 'end_user';
export type Purpose = 'environment_secret' | 'signing_secret' | 'destination_headers';

/** The message reveals nothing about the value. */
export class CannotOpen extends Error {
  override readonly name = 'CannotOpen';
  constructor(reason: string) {
    super(`A sealed value cannot be opened: ${reason}. Is SIGNALBOX_MASTER_KEY the one that sealed it?`);
  }
}

const VERSION = 1;
const FINGERPRINT_BYTES = 16;
// The first bytes of the fingerprint.
const KEY_ID_BYTES = 4;
/** The id of a key in sealed values, from its fingerprint. */
export const keyIdOf = (fingerprint: Buffer) => fingerprint.subarray(0, KEY_ID_BYTES);
/** The position of the key's id in a sealed value, counted from 1 as in SQL. */
export const KEY_ID_PLACE = { from: 2, length: KEY_ID_BYTES };
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEADER_BYTES = 1 + KEY_ID_BYTES + NONCE_BYTES + TAG_BYTES;

/** `masterKeys`: 32 bytes each; the first seals, all open. */
export function createVault(masterKeys: readonly Buffer[]): Vault {
  const keyrings = masterKeys.map((master) => {
    const digest = createHash('sha256').update('signalbox master key id').update(master).digest();
    const fingerprint = digest.subarray(0, FINGERPRINT_BYTES);
    const derived = new Map<string, Buffer>();
    return {
      fingerprint,
      id: keyIdOf(fingerprint),
      keyFor(purpose: Purpose | DerivedPurpose): Buffer {
        const known = derived.get(purpose);
        if (known) return known;
        const key = Buffer.from(hkdfSync('sha256', master, '', `signalbox ${purpose}`, 32));
        derived.set(purpose, key);
        return key;
      },
    };
  });
  const [first] = keyrings;
  if (!first) throw new TypeError('A vault needs a master key');

  return {
    fingerprints: keyrings.map(({ fingerprint }) => fingerprint),
    seal: (purpose, place, plaintext) => sealWith(first.keyFor(purpose), first.id, place, plaintext),
    derive: (purpose) => first.keyFor(purpose),
    deriveAll: (purpose) => keyrings.map(({ keyFor }) => keyFor(purpose)),
    open(purpose, place, sealed) {
      const id = sealed.subarray(1, 1 + KEY_ID_BYTES);
      const keyring = keyrings.find((candidate) => candidate.id.equals(id));
      if (!keyring) throw new CannotOpen('no configured master key sealed it');
      return openWith(keyring.keyFor(purpose), place, sealed);
    },
  };
}

/**
 * Seals with a key derived from a credential that the service does not store: only a request with the same credential can open it.
 */
export function sealUnderCredential(credential: string, place: readonly string[], plaintext: string): Buffer {
  return sealWith(credentialKey(credential), Buffer.alloc(KEY_ID_BYTES), place, plaintext);
}

/** Throws `CannotOpen` with any other credential. */
export function openUnderCredential(credential: string, place: readonly string[], sealed: Buffer): string {
  return openWith(credentialKey(credential), place, sealed);
}

function credentialKey(credential: string): Buffer {
  return Buffer.from(hkdfSync('sha256', credential, '', 'signalbox stored response', 32));
}

function sealWith(key: Buffer, keyId: Buffer, place: readonly string[], plaintext: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(JSON.stringify(place)));
  const ciphertext = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final()]);
  return Buffer.concat([Buffer.of(VERSION), keyId, nonce, cipher.getAuthTag(), ciphertext]);
}

function openWith(key: Buffer, place: readonly string[], sealed: Buffer): string {
  if (sealed.length < HEADER_BYTES || sealed[0] !== VERSION) throw new CannotOpen('its form is not known');
  const nonce = sealed.subarray(1 + KEY_ID_BYTES, 1 + KEY_ID_BYTES + NONCE_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(JSON.stringify(place)))
    .setAuthTag(sealed.subarray(HEADER_BYTES - TAG_BYTES, HEADER_BYTES));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(HEADER_BYTES)), decipher.final()]).toString('utf8');
  } catch {
    throw new CannotOpen('the key or the place is another one');
  }
}
