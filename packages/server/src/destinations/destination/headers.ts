// A destination's own headers: for receivers that want a key. Their values are secrets, sealed on the row of the destination.
import { invalidField } from '../../lib/api-error.ts';
import type { Vault } from '../../vault/vault.ts';

interface Holder {
  organizationId: string;
  destinationId: string;
}

// Characters of a header's name (RFC 9110, 5.6.2), and of its value without those that are not ASCII.
const NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
const VALUE = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/;
// What a delivery says about itself, and what belongs to the connection (RFC 9110, 7.6.1).
const RESERVED =
  /^(x-service-.*|webhook-.*|content-.*|host|user-agent|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect)$/;

/** With names in lower case. Throws a 400 that names the header, never its value. */
export function checkedHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const checked = new Map<string, string>();
  for (const [given, value] of Object.entries(headers)) {
    const name = given.toLowerCase();
    const path = `headers.${given}`;
    if (!NAME.test(name)) throw invalidField('headers', `\`${given}\` is not the name of a header`);
    if (RESERVED.test(name)) throw invalidField(path, 'is set by the service, and can’t be replaced');
    if (checked.has(name)) throw invalidField(path, 'is given twice; upper and lower case are the same');
    if (!VALUE.test(value)) throw invalidField(path, 'must be printable ASCII without spaces around it');
    checked.set(name, value);
  }
  return Object.fromEntries(checked);
}

/** Null if there are none. */
export function sealHeaders(vault: Vault, holder: Holder, headers: Readonly<Record<string, string>>): Buffer | null {
  if (Object.keys(headers).length === 0) return null;
  return vault.seal('destination_headers', placeOf(holder), JSON.stringify(headers));
}

/** Throws `CannotOpen`. */
export function openHeaders(vault: Vault, holder: Holder, sealed: Buffer | null): Record<string, string> {
  return sealed === null ? {} : JSON.parse(vault.open('destination_headers', placeOf(holder), sealed));
}

function placeOf({ organizationId, destinationId }: Holder): string[] {
  return [organizationId, destinationId];
}
