// Filters in the URL: what is none there is left out.

export const environmentPattern = /^[a-z][a-z0-9_-]{0,62}$/;
export const agentIdPattern = /^agt_[0-9a-z]{26}$/;
export const sessionIdPattern = /^ses_[0-9a-z]{26}$/;

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

/** The filters with one as it was chosen; empty: without it. */
export function withFilter<T extends object, K extends keyof T>(search: T, name: K, value: T[K] | ''): T {
  const { [name]: _, ...rest } = search;
  return (value ? { ...rest, [name]: value } : rest) as T;
}
