/**
 * What a host name stands for. There are two ways to ask, because they fail differently:
 *
 *   DNS itself           asked over sockets of our own, so any number of look-ups may hang without holding up the others
 *   the system's way     knows the hosts file, search domains and what else the machine is set up with, but takes one
 *                        of Node's few worker threads for as long as it lasts: a name whose name server never answers,
 *                        given by anyone, would keep everyone else's look-ups waiting
 *
 * So public names go to DNS, and only where the operator opened something that a private name could lead to is the
 * system asked. Answers are not kept: each connection looks anew, and judges what it gets.
 */
import { Resolver, lookup as systemLookup } from 'node:dns/promises';

/**
 * Gives every address of a name, IPv4 before IPv6 where both came from DNS; never an empty list.
 * Rejects with the resolver's error where there is none.
 */
export type Lookup = (hostname: string, options: { readonly system: boolean }) => Promise<readonly string[]>;

/** Two tries of this length leave time to connect within the 5 s that a connection has. */
const DNS_TRY_TIMEOUT_MS = 1500;
const DNS_TRIES = 2;

/** `servers` (`address` or `address:port`) instead of those that the machine is set up with. */
export function createLookup({ servers }: { readonly servers?: readonly string[] } = {}): Lookup {
  const resolver = new Resolver({ timeout: DNS_TRY_TIMEOUT_MS, tries: DNS_TRIES });
  if (servers !== undefined) resolver.setServers(servers);
  // A burst of connections to one host asks once.
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
  // IPv4 first: a machine without IPv6 then loses no time, and one without IPv4 is told so at once.
  if (addresses.length > 0) return addresses;
  throw v4.status === 'rejected' ? v4.reason : new Error('the name has no addresses');
}
