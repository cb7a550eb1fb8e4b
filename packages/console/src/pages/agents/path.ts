// Paths in a definition, in the service's notation: `tools[0].request.url`.

function partsOf(path: string): (string | number)[] {
  return [...path.matchAll(/\[(\d+)\]|[^.[]+/g)].map(([part, index]) => (index === undefined ? part : Number(index)));
}

/** The value at a path; undefined if there is none. */
export function valueAt(value: unknown, path: string): unknown {
  return partsOf(path).reduce<unknown>(
    (at, part) => (typeof at === 'object' && at !== null ? (at as Record<string | number, unknown>)[part] : undefined),
    value,
  );
}

/** A copy with another value at the path; undefined removes the field. */
export function withValueAt(value: unknown, path: string, next: unknown): unknown {
  return put(value, partsOf(path), next);
}

function put(value: unknown, [part, ...rest]: (string | number)[], next: unknown): unknown {
  if (part === undefined) return next;
  if (typeof part === 'number') {
    const list = Array.isArray(value) ? [...value] : [];
    list[part] = put(list[part], rest, next);
    return list;
  }
  const record = typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
  const inner = put((record as Record<string, unknown>)[part], rest, next);
  const { [part]: _, ...others } = record as Record<string, unknown>;
  if (inner === undefined) return others;
  return part in record ? { ...record, [part]: inner } : { ...others, [part]: inner };
}

/** Whether a path equals another one or is below it. */
export function isWithin(path: string, outer: string): boolean {
  return outer === '' || path === outer || path.startsWith(`${outer}.`) || path.startsWith(`${outer}[`);
}
