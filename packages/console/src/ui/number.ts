/**
 * The number in a field of text; undefined if the field is empty. What is not a number is sent as it was typed, so that the
 * service
 * refuses it at its field: in JSON a NaN would be null, which many fields accept.
 */
export function numberIn(text: string): number | undefined {
  const typed = text.trim();
  if (typed === '') return undefined;
  return Number.isFinite(Number(typed)) ? Number(typed) : (typed as unknown as number);
}
