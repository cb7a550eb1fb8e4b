/** Whether a JSON text, in whatever spelling, is this value. */
export function isSameJson(text: string, value: unknown): boolean {
  try {
    return isSame(JSON.parse(text), value ?? null);
  } catch {
    return false;
  }
}

function isSame(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || !a || !b) return Object.is(a, b);
  const keys = Object.keys(a);
  if (Array.isArray(a) !== Array.isArray(b) || keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => key in b && isSame(a[key as keyof typeof a], b[key as keyof typeof b]));
}
