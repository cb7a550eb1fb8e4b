// The texts of a request's template in which there can be placeholders, and what its placeholders name; see template.ts.
import { lonePlaceholder, type Placeholder, splitPlaceholders } from './placeholders.ts';

export interface RequestTemplate {
  readonly method: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON. A string is sent as text, unless its content type is JSON or it is only `{{input.n}}`. */
  readonly body?: unknown;
}

/** Deeper than any real body, and far from exhausting the stack. */
export const BODY_MAX_DEPTH = 64;

/** The names of the secrets in a template, without duplicates, sorted. */
export function secretNames(template: RequestTemplate): string[] {
  const names = new Set<string>();
  visitPlaceholders(template, (_, { source, path }) => {
    if (source === 'secrets') for (const name of path) names.add(name);
  });
  return [...names].sort();
}

/** The paths into the input that a template uses, such as `customer.id`, each with the first place in the request that has it. */
export function inputPlaceholders(template: RequestTemplate): Map<string, string> {
  const found = new Map<string, string>();
  visitPlaceholders(template, (at, { source, path }) => {
    const name = path.join('.');
    if (source === 'input' && !found.has(name)) found.set(name, at);
  });
  return found;
}

function visitPlaceholders(template: RequestTemplate, visit: (at: string, placeholder: Placeholder) => void): void {
  visitTexts(template, (at, text) => {
    for (const part of splitPlaceholders(text)) if (typeof part !== 'string') visit(at, part);
  });
}

/** Calls `visit` for each text in which there can be placeholders, with its place. */
export function visitTexts(template: RequestTemplate, visit: (at: string, text: string) => void): void {
  visit('url', template.url);
  for (const [name, value] of Object.entries(template.headers ?? {})) visit(`headers.${name}`, value);
  const body = bodyTemplate(template);
  if ('value' in body)
    visitStrings(body.value, 'body', (path, text, isName) => {
      if (!isName && text !== null) visit(path, text);
    });
}

type BodyTemplate =
  | { readonly format: 'none' }
  | { readonly format: 'broken' }
  | { readonly format: 'json'; readonly value: unknown }
  | { readonly format: 'form' | 'text'; readonly value: string };

export function contentTypeOf({ headers = {} }: Pick<RequestTemplate, 'headers'>): string | undefined {
  return Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1];
}

/** How a body is parsed. A string with a JSON content type is parsed as JSON, so that values stay within its strings. */
export function bodyTemplate(template: RequestTemplate): BodyTemplate {
  const { body } = template;
  if (body === undefined) return { format: 'none' };
  if (typeof body !== 'string') return { format: 'json', value: body };
  const mediaType = contentTypeOf(template)?.split(';')[0]?.trim().toLowerCase();
  const isJson = mediaType !== undefined && /[/+]json$/.test(mediaType);
  if ((isJson || mediaType === undefined) && lonePlaceholder(body) !== null) return { format: 'json', value: body };
  if (mediaType === 'application/x-www-form-urlencoded') return { format: 'form', value: body };
  if (!isJson) return { format: 'text', value: body };
  try {
    return { format: 'json', value: JSON.parse(body) };
  } catch {
    return { format: 'broken' };
  }
}

/** Calls `visit` for each string and each name in a JSON value, and with null for a value that is nested too deeply. */
export function visitStrings(
  value: unknown,
  path: string,
  visit: (path: string, text: string | null, isName: boolean) => void,
  depth = 0,
): void {
  if (typeof value === 'string') visit(path, value, false);
  if (typeof value !== 'object' || value === null) return;
  if (depth >= BODY_MAX_DEPTH) {
    visit(path, null, false);
    return;
  }
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) visitStrings(value[index], `${path}.${index}`, visit, depth + 1);
    return;
  }
  for (const [name, item] of Object.entries(value)) {
    visit(path, name, true);
    visitStrings(item, `${path}.${name}`, visit, depth + 1);
  }
}
