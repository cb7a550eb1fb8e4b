// Encrypts a short text under a passphrase: the master keys in a backup.
import { createCipheriv, createDecipheriv, randomBytes, scryptSync } from 'node:crypto';
import { OperatorError } from './operator.ts';

/** In base64. */
export interface SealedText {
  salt: string;
  nonce: string;
  tag: string;
  text: string;
}

const MIN_CHARACTERS = 12;
// 128 MB and a second: a backup may be tried for years.
const COST = { N: 2 ** 17, r: 8, p: 1, maxmem: 256 * 1024 * 1024 };

/** Throws `OperatorError` if the passphrase is too short. */
export function sealUnderPassphrase(passphrase: string, text: string): SealedText {
  if (passphrase.length < MIN_CHARACTERS) {
    throw new OperatorError(`The passphrase must have at least ${MIN_CHARACTERS} characters.`);
  }
  const [salt, nonce] = [randomBytes(16), randomBytes(12)];
  const cipher = createCipheriv('aes-256-gcm', scryptSync(passphrase, salt, 32, COST), nonce);
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  const [inBase64, tag] = [(bytes: Buffer) => bytes.toString('base64'), cipher.getAuthTag()];
  return { salt: inBase64(salt), nonce: inBase64(nonce), tag: inBase64(tag), text: inBase64(sealed) };
}

/** Throws `OperatorError` with another passphrase. */
export function openWithPassphrase(passphrase: string, sealed: SealedText): string {
  const [salt, nonce, tag, text] = [sealed.salt, sealed.nonce, sealed.tag, sealed.text].map((part) =>
    Buffer.from(part, 'base64'),
  ) as [Buffer, Buffer, Buffer, Buffer];
  const key = scryptSync(passphrase, salt, 32, COST);
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: 16 }).setAuthTag(tag);
    return Buffer.concat([decipher.update(text), decipher.final()]).toString('utf8');
  } catch {
    throw new OperatorError('The passphrase is not the one that the master key was saved with.');
  }
}
