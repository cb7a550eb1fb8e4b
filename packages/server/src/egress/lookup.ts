/**
 * Looks up the addresses of a host name. There are two resolvers, because they fail differently:
 *
 *   DNS                   over sockets of its own, so any number of look-ups may hang without delaying others
 *   the system's          knows the hosts file, search domains and the rest of the machine's configuration, but occupies one of Node's
 *                         few threads while it runs: names whose name server never responds would block all other look-ups
 *
 * Public names therefore use DNS. The system's resolver is used only if the operator allowed something that a private name could lead
 * to. Nothing is cached: each connection looks up and checks its addresses again.
 */
import { Resolver, lookup as systemLookup } from 'node:dns/promises';

/**
 * Returns every address of a name, IPv4 before IPv6 if both come from DNS; never an empty list. Rejects with the resolver's error if
 * there is no address.
 */
export type Lookup = (hostname: string, options: { readonly system: boolean }) => Promise<readonly string[]>;

/** Two attempts of this length leave time to connect within the connect timeout of 5 s. */
const DNS_TRY_TIMEOUT_MS = 1500;
const DNS_TRIES = 2;

/** `servers` (`address` or `address:port`): name servers to use instead of the machine's. */
export function createLookup({ servers }: { readonly servers?: readonly string[] } = {}): Lookup {
  const resolver = new Resolver({ timeout: DNS_TRY_TIMEOUT_MS, tries: DNS_TRIES });
  if (servers !== undefined) resolver.setServers(servers);
  // A burst of connections to one host looks it up once.
  const underWay = new Map<string, Promise<readonly string[]>>();

  return (hostname, { system }) => {
    const key = `${system} ${hostname}`;
    const known = underWay.get(key);
    if (known !== undefined) return known;
    const asked = (system ? askSystem(hostname) : askDns(resolver, hostname)).finally(() => underWay.delete(key));
    underWay.set(key, asked);
    return asked;
  };
}

async function askSystem(hostname: string): Promise<readonly string[]> {
  const answers = await systemLookup(hostname, { all: true, order: 'verbatim' });
  return answers.map(({ address }) => address);
}

async function askDns(resolver: Resolver, hostname: string): Promise<readonly string[]> {
  const [v4, v6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  const addresses = [v4, v6].flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  // IPv4 first: a machine without IPv6 then loses no time, and on one without IPv4 the attempt fails at once.
  if (addresses.length > 0) return addresses;
  throw v4.status === 'rejected' ? v4.reason : new Error('the name has no addresses');
}
