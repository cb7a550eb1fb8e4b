// Filters in the URL: what is none there is left out.

/** One of these words. */
export function oneOf<K extends string, const T extends string>(
  search: Record<string, unknown>,
  name: K,
  values: readonly T[],
): { [name in K]?: T } {
  return (values as readonly unknown[]).includes(search[name]) ? ({ [name]: search[name] } as { [name in K]: T }) : {};
}

/** Any text, or what matches. */
export function textIn<K extends string>(
  search: Record<string, unknown>,
  name: K,
  pattern = /./,
): { [name in K]?: string } {
  const value = search[name];
  return typeof value === 'string' && pattern.test(value) ? ({ [name]: value } as { [name in K]: string }) : {};
}
