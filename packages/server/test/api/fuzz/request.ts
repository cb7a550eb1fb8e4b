// Turns a case into the bytes of a request: resolves references and applies mutations.
import type { Case, Mutation } from './cases.ts';
import type { WireRequest } from './wire.ts';

type Resolve = <T>(value: T) => T;

export function requestOf(made: Case, { resolve, host }: { resolve: Resolve; host: string }): WireRequest {
  const { mutations } = made;
  const params = Object.entries(resolve(made.params));
  for (const mutation of mutations) {
    const param = mutation.at === 'param' ? params[mutation.place % Math.max(1, params.length)] : undefined;
    if (mutation.at !== 'param' || !param) continue;
    const value = resolve(mutation.value);
    param[1] = mutation.verbatim ? { verbatim: value } : value;
  }
  const values = new Map(params);
  const prefix = made.path.startsWith('/console/') ? '' : '/api/v1';
  const path = `${prefix}${made.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encoded(values.get(name)))}`;
  const target = mutations.reduce(changedPath, path) + queryOf(made, resolve);
  const json = resolve(made.body);
  const changed = mutations.reduce((value, mutation) => changedBody(value, resolve(mutation)), json);
  const body = changed === undefined ? undefined : Buffer.from(JSON.stringify(changed) ?? '');
  const named = mutations.findLast((mutation) => mutation.at === 'method');
  return withBytes(
    {
      method: named?.at === 'method' ? named.value : made.method,
      target: mutations.reduce((at, mutation) => (isPath(mutation, 'absolute') ? `http://${host}${at}` : at), target),
      headers: headersOf(made, { resolve, host, hasBody: body !== undefined }),
      body,
      isCut: false,
    },
    mutations,
  );
}

function isPath(mutation: Mutation, how: string): boolean {
  return mutation.at === 'path' && mutation.how === how;
}

function changedPath(path: string, mutation: Mutation): string {
  if (isPath(mutation, 'slash')) return `${path}/`;
  if (isPath(mutation, 'doubled')) return path.replace('/v1/', '/v1//');
  if (isPath(mutation, 'capitals')) return path.toUpperCase();
  if (isPath(mutation, 'dots')) return `/api/../api/v1/.${path.slice('/api/v1'.length)}`;
  return path;
}

function queryOf({ query, mutations }: Case, resolve: Resolve): string {
  const parts = resolve(query).map(([name, value]) => `${encoded(name)}=${encoded(value)}`);
  for (const mutation of mutations) {
    if (mutation.at !== 'query') continue;
    const value = resolve(mutation.value);
    const [first] = parts;
    const [firstName = encoded(mutation.name)] = first?.split('=') ?? [];
    if (mutation.how === 'set') parts.push(`${encoded(mutation.name)}=${encoded(value)}`);
    if (mutation.how === 'again') parts.push(`${firstName}=${encoded(value)}`, ...(first ? [first] : []));
    if (mutation.how === 'nest') parts.push(`${firstName}[${encoded(mutation.name)}][]=${encoded(value)}`);
    if (mutation.how === 'verbatim') parts.push(encoded({ verbatim: `${mutation.name}=${value}&&=&a&%=%` }));
  }
  const fragment = mutations.some((mutation) => isPath(mutation, 'fragment')) ? '#fragment?x=1' : '';
  return (parts.length === 0 ? '' : `?${parts.join('&')}`) + fragment;
}

/** Percent-encoded; half a surrogate pair becomes the three bytes that some encoders write. `verbatim`: what a request line can hold. */
function encoded(value: unknown): string {
  if (typeof value === 'object' && value !== null && 'verbatim' in value) {
    return String(value.verbatim).replaceAll(/[^\x21-\x7e]/g, (character) => encoded(character));
  }
  const bytes = [...String(value)].flatMap((character) => {
    const point = character.codePointAt(0)!;
    const isHalf = point >= 0xd8_00 && point <= 0xdf_ff;
    return isHalf
      ? [0xe0 | (point >> 12), 0x80 | ((point >> 6) & 63), 0x80 | (point & 63)]
      : [...Buffer.from(character)];
  });
  return bytes
    .map((byte) => (/[\w.~-]/.test(String.fromCharCode(byte)) ? String.fromCharCode(byte) : `%${hexOf(byte)}`))
    .join('');
}

function hexOf(byte: number): string {
  return byte.toString(16).padStart(2, '0').toUpperCase();
}

function changedBody(value: unknown, mutation: Mutation): unknown {
  if (mutation.at !== 'body') return value;
  // A route without a body gets one.
  if (value === undefined) return mutation.how === 'remove' ? undefined : mutation.value;
  const places = placesIn(value);
  const { holder, key } = places[mutation.place % places.length]!;
  const at = holder[key];
  if (mutation.how === 'replace') set(holder, key, mutation.value);
  else if (mutation.how === 'remove') delete holder[key];
  else if (mutation.how === 'wrap') set(holder, key, [at]);
  else if (typeof at === 'object' && at !== null) set(at as Holder, mutation.name, mutation.value);
  else set(holder, mutation.name, mutation.value);
  return places[0]!.holder.value;
}

type Holder = Record<string, unknown>;

/** Every value of a copy with its parent; the first is the copy itself, in a parent of its own. */
function placesIn(value: unknown): { holder: Holder; key: string }[] {
  const places: { holder: Holder; key: string }[] = [{ holder: { value: structuredClone(value) }, key: 'value' }];
  for (const { holder, key } of places) {
    const inner = holder[key];
    if (typeof inner !== 'object' || inner === null) continue;
    places.push(...Object.keys(inner).map((name) => ({ holder: inner as Holder, key: name })));
    if (places.length > 200) break;
  }
  return places;
}

/** Defines an own property, whatever its name. */
function set(holder: Holder, key: string, value: unknown): void {
  Object.defineProperty(holder, key, { value, enumerable: true, configurable: true, writable: true });
}

function headersOf(
  { headers, mutations }: Case,
  { resolve, host, hasBody }: { resolve: Resolve; host: string; hasBody: boolean },
): [string, string][] {
  const all: [string, string][] = [['Host', host], ...(resolve(headers) as [string, string][])];
  if (hasBody) all.push(['Content-Type', 'application/json']);
  for (const mutation of mutations) {
    if (mutation.at !== 'header') continue;
    const others = all.filter(([name]) => name.toLowerCase() !== mutation.name.toLowerCase());
    all.splice(0, all.length, ...others, [mutation.name, resolve(mutation.value)]);
  }
  return all;
}

const MIB = 1024 * 1024;

function withBytes(request: WireRequest, mutations: readonly Mutation[]): WireRequest {
  const ways = mutations.flatMap((mutation) => (mutation.at === 'bytes' ? [mutation.how] : []));
  const way = ways.at(-1);
  const body = way === undefined ? request.body : bodyAs(way, request.body ?? Buffer.from('{}'));
  const isOwn = request.headers.some(([name]) => name.toLowerCase() === 'content-type');
  const headers: [string, string][] = request.headers.map(([name, value]) => [name, value]);
  if (way !== undefined && !isOwn) headers.push(['Content-Type', 'application/json']);
  const length = body?.length ?? 0;
  if (way === 'chunked' || way === 'wrongly chunked') headers.push(['Transfer-Encoding', 'chunked']);
  else if (way === 'shorter than said') headers.push(['Content-Length', String(length + 10)]);
  else if (way === 'longer than said') headers.push(['Content-Length', String(Math.max(0, length - 1))]);
  else if (body) headers.push(['Content-Length', String(length)]);
  if (way === 'said twice') headers.push(['Content-Length', String(length + 1)]);
  return { ...request, headers, body, isCut: way === 'shorter than said' || way === 'wrongly chunked' };
}

function bodyAs(way: string, body: Uint8Array): Uint8Array {
  const text = Buffer.from(body).toString();
  switch (way) {
    case 'half':
      return body.subarray(0, Math.ceil(body.length / 2));
    case 'not UTF-8':
      return Buffer.concat([
        Buffer.from('{"name":"'),
        Buffer.from([0xc3, 0x28, 0xff, 0xed, 0xa0, 0x80]),
        Buffer.from('"}'),
      ]);
    case 'byte order mark':
      return Buffer.from(`\ufeff${text}`);
    case 'name twice':
      return Buffer.from(text.replace(/^\{("[^"]*":)/, '{$1null,$1'));
    case 'proto':
      return Buffer.from(text.replace(/^\{/, '{"__proto__":{"permission":"admin"},"\\u005f_proto__":1,'));
    case 'brackets':
      return Buffer.from('['.repeat(100_000));
    case 'braces':
      return Buffer.from(`${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`);
    case 'number too large':
      return Buffer.from(text.replace(/^\{/, '{"limit":1e999,'));
    case 'number too long':
      return Buffer.from(text.replace(/^\{/, `{"limit":${'9'.repeat(50_000)},`));
    case 'too large':
      return Buffer.alloc(MIB + 1, ' ');
    case 'empty':
      return Buffer.alloc(0);
    case 'spaces':
      return Buffer.from(' \r\n\t');
    case 'null':
      return Buffer.from('null');
    case 'a text':
      return Buffer.from('"text"');
    case 'comment':
      return Buffer.from(`// a comment\n${text},`);
    case 'NUL':
      return Buffer.from(`${text}\0`);
    case 'chunked':
      return Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n0\r\n\r\n')]);
    case 'wrongly chunked':
      return Buffer.concat([Buffer.from('ffffffffffffffffff\r\n'), body]);
    default:
      return body;
  }
}
