// Query strings: `a=1&metadata[key]=value` → `{ a: '1', metadata: { key: 'value' } }`. A repeated name becomes a
// list, which no schema allows, so the refusal names it.
import { parse } from 'node:querystring';

/** Never throws: Fastify calls it where an error would leave the request without a response. */
export function parseQuery(text: string): Record<string, unknown> {
  const query: Record<string, unknown> = {};
  const maps = new Map<string, Record<string, unknown>>();
  for (const [name, value] of Object.entries(parse(text))) {
    const [, outer, inner] = /^(\w+)\[(.*)\]$/s.exec(name) ?? [];
    if (outer === undefined) {
      add(query, name, value);
    } else {
      const known = maps.get(outer);
      const map = known ?? {};
      add(map, inner!, value);
      if (!known) {
        maps.set(outer, map);
        add(query, outer, map);
      }
    }
  }
  return query;
}

/** Defines an own property, also for `__proto__`, for which an assignment would not. */
function add(target: Record<string, unknown>, name: string, value: unknown): void {
  const both = Object.hasOwn(target, name) ? [target[name], value] : value;
  Object.defineProperty(target, name, { value: both, enumerable: true, configurable: true, writable: true });
}
