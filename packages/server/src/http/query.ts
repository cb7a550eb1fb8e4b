// Query strings: `a=1&metadata[key]=value` → `{ a: '1', metadata: { key: 'value' } }`. A name that comes twice is a list,
// which no schema of ours takes: the refusal names it.
import { parse } from 'node:querystring';

export function parseQuery(text: string): Record<string, unknown> {
  const query: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(parse(text))) {
    const [, outer, inner] = /^(\w+)\[([^\]]*)\]$/.exec(name) ?? [];
    if (outer === undefined) {
      define(query, name, value);
    } else {
      if (!Object.hasOwn(query, outer)) define(query, outer, {});
      define(query[outer] as Record<string, unknown>, inner!, value);
    }
  }
  return query;
}

/** As an own property, whatever its name: an assignment to `__proto__` would be none. */
function define(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
}
