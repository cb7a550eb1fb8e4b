// Ids of deliveries in the form of the service's own: `whd_` and a UUIDv7 in Crockford's base32.
import { getRandomValues } from 'node:crypto';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

export function newDeliveryId(now: number): string {
  const random = getRandomValues(new BigUint64Array(2));
  const variant = 0b10n << 62n;
  const high = (BigInt(now) << 16n) | 0x7000n | (random[0]! & 0xfffn);
  let rest = (high << 64n) | variant | (random[1]! & ((1n << 62n) - 1n));
  let text = '';
  for (let n = 0; n < 26; n += 1) {
    text = ALPHABET[Number(rest & 31n)] + text;
    rest >>= 5n;
  }
  return `whd_${text}`;
}
