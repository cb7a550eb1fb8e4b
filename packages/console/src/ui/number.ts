/**
 * The number in a text field; undefined if the field is empty. Other text is sent as typed, so that the service reports it at its
 * field: in JSON, NaN would be null, which many fields accept.
 */
export function numberIn(text: string): number | undefined {
  const typed = text.trim();
  if (typed === '') return undefined;
  return Number.isFinite(Number(typed)) ? Number(typed) : (typed as unknown as number);
}
