// The origins of web pages: `https://app.example.com`, and patterns of them, `https://*.example.com`.

const ANY_SUBDOMAIN = '://*.';

/** What is wrong with an entry of a list of allowed origins; undefined if nothing is. */
export function problemWithOrigin(entry: string): string | undefined {
  const isPattern = entry.includes('*');
  if (isPattern && (!entry.startsWith(`https${ANY_SUBDOMAIN}`) || entry.split('*').length > 2)) {
    return 'must have "*" only as the whole first label, after "https://"';
  }
  const example = isPattern ? entry.replace('*', 'any') : entry;
  if (originOf(example) !== example) {
    return 'must be an origin as browsers send it, such as "https://app.example.com": scheme, host in lower case and, if it is not the usual one, the port';
  }
  // A pattern for a whole top-level domain would allow strangers.
  if (isPattern && example.split('.').length < 3) return 'must have a domain of at least two labels after "*."';
  return undefined;
}

/** Whether a browser's `Origin` is in the list. */
export function isAllowedOrigin(allowed: readonly string[], origin: string): boolean {
  // The end of a text that no browser sends, such as several origins, could match a pattern.
  if (originOf(origin) !== origin) return false;
  return allowed.some((entry) => {
    const [scheme, domain] = entry.split(ANY_SUBDOMAIN);
    if (domain === undefined) return entry === origin;
    const host = origin.startsWith(`${scheme}://`) ? origin.slice(scheme!.length + 3) : '';
    return host.length > domain.length + 1 && host.endsWith(`.${domain}`);
  });
}

/** The origin of an address of a web page; undefined for anything else. */
function originOf(text: string): string | undefined {
  const url = URL.parse(text);
  return url && /^https?:$/.test(url.protocol) ? url.origin : undefined;
}
