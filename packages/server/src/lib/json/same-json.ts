/** Whether two JSON values are equal, regardless of the order of fields. Visits each value once. */
export function isSameJson(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length) return false;
  const [a, b] = [one, other] as Record<string, unknown>[];
  return names.every((name) => Object.hasOwn(other, name) && isSameJson(a![name], b![name]));
}
