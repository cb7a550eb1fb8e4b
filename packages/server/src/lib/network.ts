// Networks as people write them: one address, or a CIDR.
import ipaddr from 'ipaddr.js';

export interface Network {
  readonly address: ipaddr.IPv4 | ipaddr.IPv6;
  readonly prefixLength: number;
}

/** Reads `10.0.0.0/8`, `192.168.1.5`, `fd00::/8`. Throws an Error whose message goes on after the text that was given. */
export function parseNetwork(text: string): Network {
  const [first = '', prefixText, ...rest] = text.split('/');
  const family = familyOf(first);
  if (family === 0 || first.includes('%') || rest.length > 0) throw new Error('is neither an address nor a CIDR');
  const address = ipaddr.parse(first);
  const addressBits = family === 4 ? 32 : 128;
  const prefixLength = prefixText === undefined ? addressBits : Number(prefixText);
  if (prefixText !== undefined && (!/^\d{1,3}$/.test(prefixText) || prefixLength > addressBits)) {
    throw new Error(`has a prefix length outside of 0 to ${addressBits}`);
  }
  // 10.1.2.3/8 is more often a slip for /32 than a way to say 10.0.0.0/8, and would take in sixteen million addresses.
  const { IPv4, IPv6 } = ipaddr;
  const start = (family === 4 ? IPv4 : IPv6).networkAddressFromCIDR(`${first}/${prefixLength}`).toString();
  if (start !== address.toString())
    throw new Error(`is not the first address of its range; did you mean ${start}/${prefixLength}?`);
  return { address, prefixLength };
}

/** Whether an address lies in one of them. An IPv4 address that came over an IPv6 socket (`::ffff:10.0.0.1`) is what it stands for. */
export function isWithin(networks: readonly Network[], address: string): boolean {
  if (familyOf(address) === 0) return false;
  const ip = ipaddr.process(address);
  return networks.some(
    (network) => network.address.kind() === ip.kind() && ip.match([network.address, network.prefixLength]),
  );
}

/**
 * Who counts as one: an IPv4 address, or the 64 bits that a single subscriber's IPv6 addresses share. Anything else (a socket
 * of the system) as it is.
 */
export function networkOf(address: string): string {
  if (familyOf(address) === 0) return address;
  const ip = ipaddr.process(address);
  return ip instanceof ipaddr.IPv4
    ? ip.toString()
    : `${ip.parts
        .slice(0, 4)
        .map((part) => part.toString(16))
        .join(':')}::/64`;
}

/** 0 where it is no address in its plain spelling: the library's own parser would read 010.0.0.1 as octal. */
function familyOf(text: string): 0 | 4 | 6 {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return 4;
  return text.includes(':') && ipaddr.IPv6.isValid(text) ? 6 : 0;
}
