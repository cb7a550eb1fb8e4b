// Networks as an operator writes them: one address, or a CIDR.
import ipaddr from 'ipaddr.js';

export interface Network {
  readonly address: ipaddr.IPv4 | ipaddr.IPv6;
  readonly prefixLength: number;
}

/** Reads `10.0.0.0/8`, `192.168.1.5`, `fd00::/8`. Throws an Error whose message continues a sentence that starts with the text. */
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
  // 10.1.2.3/8 is more often a typing error for /32 than a way to write 10.0.0.0/8, and would match sixteen million addresses.
  const { IPv4, IPv6 } = ipaddr;
  const start = (family === 4 ? IPv4 : IPv6).networkAddressFromCIDR(`${first}/${prefixLength}`).toString();
  if (start !== address.toString())
    throw new Error(`is not the first address of its range; did you mean ${start}/${prefixLength}?`);
  return { address, prefixLength };
}

/** Whether an address is in one of them. An IPv4 address from an IPv6 socket (`::ffff:10.0.0.1`) counts as the IPv4 address. */
export function isWithin(networks: readonly Network[], address: string): boolean {
  if (familyOf(address) === 0) return false;
  const ip = ipaddr.process(address);
  return networks.some(
    (network) => network.address.kind() === ip.kind() && ip.match([network.address, network.prefixLength]),
  );
}

/** Whether every address of `inner` is in `outer`. */
export function isNetworkWithin(outer: Network, inner: Network): boolean {
  return inner.prefixLength >= outer.prefixLength && isWithin([outer], inner.address.toString());
}

/**
 * What counts as one client: an IPv4 address, or the 64 bits that the IPv6 addresses of one subscriber share. Anything else, such as
 * a unix socket, is returned as it is.
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

/** 0 if it is not an address in plain notation: the library's own parser would read 010.0.0.1 as octal. */
function familyOf(text: string): 0 | 4 | 6 {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return 4;
  return text.includes(':') && ipaddr.IPv6.isValid(text) ? 6 : 0;
}
