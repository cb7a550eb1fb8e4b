// A passkey in software: responds to the options of the service like a browser's authenticator (WebAuthn level 2, attestation "none",
// ES256).
import { createHash, createSign, generateKeyPairSync, randomBytes } from 'node:crypto';

interface Options {
  challenge: string;
}

export interface Authenticator {
  /** The response to registration options. */
  register(options: Options): object;
  /** The response to authentication options. */
  authenticate(options: Options): object;
}

const USER_PRESENT = 0x01;
const USER_VERIFIED = 0x04;
const HAS_CREDENTIAL = 0x40;

/**
 * `origin`: of the page, which the browser includes in the signed data. `verifies`: whether the authenticator verifies the user by
 * PIN, fingerprint or face.
 */
export function createAuthenticator(
  origin: string,
  rpId = new URL(origin).hostname,
  { verifies = true } = {},
): Authenticator {
  const present = USER_PRESENT | (verifies ? USER_VERIFIED : 0);
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x, y } = publicKey.export({ format: 'jwk' });
  const credentialId = randomBytes(16);
  const id = credentialId.toString('base64url');
  let counter = 0;

  function authenticatorData(flags: number, ...more: Buffer[]): Buffer {
    counter += 1;
    const count = Buffer.alloc(4);
    count.writeUInt32BE(counter);
    return Buffer.concat([createHash('sha256').update(rpId).digest(), Buffer.of(flags), count, ...more]);
  }

  const clientData = (type: string, challenge: string) =>
    Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }));
  const credential = (response: object) => ({
    id,
    rawId: id,
    type: 'public-key',
    clientExtensionResults: {},
    response,
  });

  return {
    register({ challenge }) {
      // COSE, in CBOR: { 1: 2 (EC2), 3: -7 (ES256), -1: 1 (P-256), -2: x, -3: y }
      const key = Buffer.concat([
        Buffer.from('a5010203262001215820', 'hex'),
        Buffer.from(x!, 'base64url'),
        Buffer.from('225820', 'hex'),
        Buffer.from(y!, 'base64url'),
      ]);
      const length = Buffer.of(0, credentialId.length);
      const flags = present | HAS_CREDENTIAL;
      const data = authenticatorData(flags, Buffer.alloc(16), length, credentialId, key);
      const attestation = Buffer.concat([
        Buffer.from('a363', 'hex'),
        Buffer.from('fmt'),
        Buffer.from('64', 'hex'),
        Buffer.from('none'),
        Buffer.from('67', 'hex'),
        Buffer.from('attStmt'),
        Buffer.from('a068', 'hex'),
        Buffer.from('authData'),
        Buffer.of(0x58, data.length),
        data,
      ]);
      return credential({
        clientDataJSON: clientData('webauthn.create', challenge).toString('base64url'),
        attestationObject: attestation.toString('base64url'),
        transports: ['internal'],
      });
    },

    authenticate({ challenge }) {
      const client = clientData('webauthn.get', challenge);
      const data = authenticatorData(present);
      const signed = createSign('sha256').update(data).update(createHash('sha256').update(client).digest());
      return credential({
        clientDataJSON: client.toString('base64url'),
        authenticatorData: data.toString('base64url'),
        signature: signed.sign(privateKey).toString('base64url'),
      });
    },
  };
}
