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
  const names = placeholdersIn(template).flatMap(({ placeholder: { source, path } }) =>
    source === 'secrets' ? path : [],
  );
  return [...new Set(names)].sort();
}

/** The paths into the input that a template uses, such as `customer.id`, each with the first place in the request that has it. */
export function inputPlaceholders(template: RequestTemplate): Map<string, string> {
  const found = new Map<string, string>();
  for (const { at, placeholder } of placeholdersIn(template)) {
    const path = placeholder.path.join('.');
    if (placeholder.source === 'input' && !found.has(path)) found.set(path, at);
  }
  return found;
}

function placeholdersIn(template: RequestTemplate): { at: string; placeholder: Placeholder }[] {
  return textsIn(template).flatMap(([at, text]) =>
    splitPlaceholders(text).flatMap((part) => (typeof part === 'string' ? [] : [{ at, placeholder: part }])),
  );
}

/** The texts in which there can be placeholders, with their places. */
export function textsIn(template: RequestTemplate): [at: string, text: string][] {
  const texts: [string, string][] = [['url', template.url]];
  for (const [name, value] of Object.entries(template.headers ?? {})) texts.push([`headers.${name}`, value]);
  const body = bodyTemplate(template);
  if ('value' in body)
    visitStrings(body.value, 'body', (path, text, isName) => {
      if (!isName && text !== null) texts.push([path, text]);
    });
  return texts;
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
  for (const [name, item] of Object.entries(value)) {
    visit(path, name, true);
    visitStrings(item, `${path}.${name}`, visit, depth + 1);
  }
}
