// Finds placeholders in a template: `{{input.customer.id}}`, `{{secrets.NAME}}` and `{{session.endUser.id}}`; see template.ts.

export interface Placeholder {
  /** As written, without braces: `input.customer.id`. */
  readonly text: string;
  readonly source: 'input' | 'secrets' | 'session';
  readonly path: readonly string[];
}

export type Part = string | Placeholder;

const PLACEHOLDER =
  /\{\{((input)((?:\.[A-Za-z0-9_-]+)+)|(secrets)(\.[A-Z][A-Z0-9_]{0,63})|(session)(\.endUser\.(?:id|name)))\}\}/g;

export function splitPlaceholders(text: string): Part[] {
  // Most texts have none; a template can have a hundred thousand texts.
  if (!text.includes('{{')) return text === '' ? [] : [text];
  const parts: Part[] = [];
  let end = 0;
  for (const match of text.matchAll(PLACEHOLDER)) {
    parts.push(text.slice(end, match.index));
    const [, whole = '', input, inputPath, secrets, secretPath, , sessionPath = ''] = match;
    const source = input ? 'input' : secrets ? 'secrets' : 'session';
    const path = (inputPath ?? secretPath ?? sessionPath).slice(1).split('.');
    parts.push({ text: whole, source, path });
    end = match.index + match[0].length;
  }
  parts.push(text.slice(end));
  return parts.filter((part) => part !== '');
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
