// X.509 certificates in DER, written by hand: Node reads them but does not create them.
import { createSign, type KeyObject } from 'node:crypto';

/** A DER value from its parts. */
export function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const size = content.length;
  const length = size < 0x80 ? [size] : size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.of(tag, ...length), content]);
}

export const SEQUENCE = 0x30;
export const INTEGER = 0x02;
export const OCTET_STRING = 0x04;
const SET = 0x31;
const BIT_STRING = 0x03;
const UTC_TIME = 0x17;
const UTF8 = 0x0c;

/** An extension; `oid` is the encoded object identifier, in hex. */
export function extension(oid: string, value: Buffer): Buffer {
  return der(SEQUENCE, der(0x06, Buffer.from(oid, 'hex')), der(OCTET_STRING, value));
}

/** Names an address at which the list of revoked certificates is. */
export function revocationListAt(url: string): Buffer {
  const point = der(SEQUENCE, der(0xa0, der(0xa0, der(0x86, Buffer.from(url)))));
  return extension('551d1f', der(SEQUENCE, point));
}

/** A certificate for `publicKey`, signed by `issuerKey` (P-256). */
export function certificate(given: {
  subject: string;
  issuer: string;
  publicKey: KeyObject;
  issuerKey: KeyObject;
  extensions?: Buffer[];
}): Buffer {
  const nameOf = (text: string) =>
    der(SEQUENCE, der(SET, der(SEQUENCE, der(0x06, Buffer.from('550403', 'hex')), der(UTF8, Buffer.from(text)))));
  const ecdsaWithSha256 = der(SEQUENCE, der(0x06, Buffer.from('2a8648ce3d040302', 'hex')));
  const { extensions = [] } = given;
  const content = der(
    SEQUENCE,
    der(0xa0, der(INTEGER, Buffer.of(2))),
    der(INTEGER, Buffer.of(1)),
    ecdsaWithSha256,
    nameOf(given.issuer),
    der(SEQUENCE, der(UTC_TIME, Buffer.from('200101000000Z')), der(UTC_TIME, Buffer.from('491231000000Z'))),
    nameOf(given.subject),
    given.publicKey.export({ format: 'der', type: 'spki' }),
    ...(extensions.length > 0 ? [der(0xa3, der(SEQUENCE, ...extensions))] : []),
  );
  const signature = createSign('sha256').update(content).sign(given.issuerKey);
  return der(SEQUENCE, content, ecdsaWithSha256, der(BIT_STRING, Buffer.of(0), signature));
}
