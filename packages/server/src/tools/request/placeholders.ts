// Finds placeholders in a template: `{{input.customer.id}}`, `{{secrets.NAME}}` and `{{session.endUser.id}}`; see template.ts.

export interface Placeholder {
  /** As written, without braces: `input.customer.id`. */
  readonly text: string;
  readonly source: 'input' | 'secrets' | 'session';
  readonly path: readonly string[];
}

export type Part = string | Placeholder;

const PLACEHOLDER = /\{\{(input(?:\.[A-Za-z0-9_-]+)+|secrets\.[A-Z][A-Z0-9_]{0,63}|session\.endUser\.(?:id|name))\}\}/g;

/** Cheap also for the hundred thousand texts that a template of 1 MiB can have: the event loop waits for it. */
export function splitPlaceholders(text: string): Part[] {
  if (!text.includes('{{')) return text === '' ? [] : [text];
  const parts: Part[] = [];
  let end = 0;
  PLACEHOLDER.lastIndex = 0;
  for (let match = PLACEHOLDER.exec(text); match !== null; match = PLACEHOLDER.exec(text)) {
    if (match.index > end) parts.push(text.slice(end, match.index));
    const whole = match[1]!;
    const [source, ...path] = whole.split('.');
    parts.push({ text: whole, source: source as Placeholder['source'], path });
    end = PLACEHOLDER.lastIndex;
  }
  if (end < text.length) parts.push(text.slice(end));
  return parts;
}

/** The placeholder, if the text consists of one and nothing else. */
export function lonePlaceholder(text: string): Placeholder | null {
  const [only, ...more] = splitPlaceholders(text);
  return only === undefined || typeof only === 'string' || more.length > 0 ? null : only;
}

export function hasPlaceholder(text: string): boolean {
  return splitPlaceholders(text).some((part) => typeof part !== 'string');
}

/** The first braces that are not a placeholder, with enough of the following text to recognize them. */
export function strayBraces(parts: readonly Part[]): string | undefined {
  const stray = parts.find((part) => typeof part === 'string' && part.includes('{{'));
  return typeof stray === 'string' ? /\{\{.{0,60}?(?:\}\}|$)|\{\{/s.exec(stray)?.[0] : undefined;
}

/** What looks like a placeholder of another notation, such as `${input.order}`; in a URL also `${order}` and `{order}`. */
export function foreignPlaceholder(parts: readonly Part[], isUrl: boolean): string | undefined {
  const pattern = isUrl ? /\$?\{[^{}]{0,60}\}?|\}/ : /(?<!\{)\$?\{\s*(?:input|secrets|session)\.[^{}]{0,60}\}(?!\})/;
  for (const part of parts) {
    const found = typeof part === 'string' && !part.includes('{{') ? pattern.exec(part) : null;
    if (found) return found[0];
  }
  return undefined;
}
