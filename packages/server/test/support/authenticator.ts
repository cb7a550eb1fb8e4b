// A passkey in software: responds to the options of the service like a browser's authenticator (WebAuthn level 2, attestation "none",
// ES256).
import { createHash, createSign, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { certificate, der, extension, INTEGER, OCTET_STRING, revocationListAt, SEQUENCE } from './certificate.ts';

interface Options {
  challenge: string;
}

export interface Authenticator {
  /**
   * The response to registration options. With `revocationList`, it proves its origin with certificates, as Android does, that name this
   * address; they are not Google's.
   */
  register(options: Options, more?: { revocationList?: string }): object;
  /** The response to authentication options. `verifies`: whether it asked for a PIN, fingerprint or face. */
  authenticate(options: Options, more?: { verifies?: boolean }): object;
}

const USER_PRESENT = 0x01;
const USER_VERIFIED = 0x04;
const HAS_CREDENTIAL = 0x40;

/**
 * `origin`: of the page, which the browser includes in the signed data. `verifies`: whether it asks for a PIN, fingerprint or face.
 */
export function createAuthenticator(
  origin: string,
  rpId = new URL(origin).hostname,
  { verifies = true } = {},
): Authenticator {
  const present = (verified: boolean) => USER_PRESENT | (verified ? USER_VERIFIED : 0);
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
    register({ challenge }, { revocationList } = {}) {
      // COSE, in CBOR: { 1: 2 (EC2), 3: -7 (ES256), -1: 1 (P-256), -2: x, -3: y }
      const key = Buffer.concat([
        Buffer.from('a5010203262001215820', 'hex'),
        Buffer.from(x!, 'base64url'),
        Buffer.from('225820', 'hex'),
        Buffer.from(y!, 'base64url'),
      ]);
      const client = clientData('webauthn.create', challenge);
      const length = Buffer.of(0, credentialId.length);
      const flags = present(verifies) | HAS_CREDENTIAL;
      const data = authenticatorData(flags, Buffer.alloc(16), length, credentialId, key);
      const [format, statement] = revocationList
        ? androidStatement(revocationList, { publicKey, privateKey }, data, client)
        : ['none', Buffer.of(0xa0)];
      const attestation = [
        ...[Buffer.of(0xa3), cborText('fmt'), cborText(format), cborText('attStmt'), statement],
        ...[cborText('authData'), cborBytes(data)],
      ];
      return credential({
        clientDataJSON: client.toString('base64url'),
        attestationObject: Buffer.concat(attestation).toString('base64url'),
        transports: ['internal'],
      });
    },

    authenticate({ challenge }, { verifies: verified = verifies } = {}) {
      const client = clientData('webauthn.get', challenge);
      const data = authenticatorData(present(verified));
      const signed = createSign('sha256').update(data).update(createHash('sha256').update(client).digest());
      return credential({
        clientDataJSON: client.toString('base64url'),
        authenticatorData: data.toString('base64url'),
        signature: signed.sign(privateKey).toString('base64url'),
      });
    },
  };
}

/** Format and statement of an attestation `android-key`, valid but for the root certificate. */
function androidStatement(
  revocationList: string,
  { publicKey, privateKey }: { publicKey: KeyObject; privateKey: KeyObject },
  data: Buffer,
  client: Buffer,
): [string, Buffer] {
  const clientHash = createHash('sha256').update(client).digest();
  const [number, level] = [der(INTEGER, Buffer.of(3)), der(0x0a, Buffer.of(1))];
  const challenge = der(OCTET_STRING, clientHash);
  const description = [number, level, number, level, challenge, der(OCTET_STRING), der(SEQUENCE), der(SEQUENCE)];
  const root = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const common = { issuer: 'root', issuerKey: root.privateKey };
  const extensions = [
    extension('2b06010401d679020111', der(SEQUENCE, ...description)),
    revocationListAt(revocationList),
  ];
  const certificates = [
    certificate({ ...common, subject: 'key', publicKey, extensions }),
    certificate({ ...common, subject: 'root', publicKey: root.publicKey }),
  ];
  const signature = createSign('sha256').update(data).update(clientHash).sign(privateKey);
  const parts = [Buffer.of(0xa3), cborText('alg'), Buffer.of(0x26), cborText('sig'), cborBytes(signature)];
  return ['android-key', Buffer.concat([...parts, cborText('x5c'), Buffer.of(0x82), ...certificates.map(cborBytes)])];
}

function cborText(text: string): Buffer {
  return Buffer.concat([Buffer.of(0x60 | text.length), Buffer.from(text)]);
}

function cborBytes(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.of(0x59, bytes.length >> 8, bytes.length & 0xff), bytes]);
}
