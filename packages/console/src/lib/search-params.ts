// Filters in the URL. Invalid values are ignored.

export const environmentPattern = /^[a-z][a-z0-9_-]{0,62}$/;
export const agentIdPattern = /^agt_[0-9a-z]{26}$/;
export const endUserIdPattern = /^.{1,200}$/su;
export const sessionIdPattern = /^ses_[0-9a-z]{26}$/;
export const operationIdPattern = /^op_[0-9a-z]{26}$/;

/** A parameter with one of these values. */
export function oneOf<K extends string, const T extends string>(
  search: Record<string, unknown>,
  name: K,
  values: readonly T[],
): { [name in K]?: T } {
  return (values as readonly unknown[]).includes(search[name]) ? ({ [name]: search[name] } as { [name in K]: T }) : {};
}

/** A text parameter, optionally with a pattern. */
export function textIn<K extends string>(
  search: Record<string, unknown>,
  name: K,
  pattern = /./,
): { [name in K]?: string } {
  const value = search[name];
  return typeof value === 'string' && pattern.test(value) ? ({ [name]: value } as { [name in K]: string }) : {};
}

/** The filters with one changed. An empty value removes it: undefined rather than absent, because links keep the environment. */
export function withFilter<T extends object, K extends keyof T>(search: T, name: K, value: T[K] | ''): T {
  return { ...search, [name]: value || undefined };
}
