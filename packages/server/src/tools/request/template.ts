/**
 * The request of an `http` tool, as its author wrote it, with placeholders for values that are known only when it is called:
 *
 *   {{input.customer.id}}   a value of the model's input, by a dotted path; a number is an index of an array
 *   {{secrets.NAME}}        a secret of the environment
 *   {{session.endUser.id}}  the end user that the session is for; also `.name`
 *
 * The model chooses the values, perhaps under the influence of text from a third party. A value therefore never changes the
 * structure of the request:
 *
 *   scheme, host, port   no placeholders
 *   path                 a value stays within its segment: percent-encoded; `.`, `..` and an empty segment are refused
 *   query                percent-encoded
 *   headers              only in values; line breaks and other characters that HTTP does not allow are refused
 *   body                 within the strings of a JSON value; a string that is only `{{input.n}}` becomes the value itself, with
 *                        its JSON type. In a form, percent-encoded; in any other text, as it is
 *
 * If the input's schema has a property and the model left it out, then whatever consists only of its placeholder is left out
 * as well: a parameter of the query or of a form, a header, a member of a JSON object. So it is with the name of the end user. Anywhere
 * else, a missing value is an error. A missing id of the end user always is: a server that gets no id may take that for everyone.
 *
 * This file sends nothing and reads no secrets itself. Errors name a placeholder, never a value.
 */
import type { EndUser } from '@signalbox/contract';
import { CONNECTION_HEADERS } from '../../egress/exchange.ts';
import {
  foreignPlaceholder,
  hasPlaceholder,
  lonePlaceholder,
  type Placeholder,
  splitPlaceholders,
  strayBraces,
} from './placeholders.ts';
import {
  BODY_MAX_DEPTH,
  bodyTemplate,
  contentTypeOf,
  type RequestTemplate,
  visitStrings,
  visitTexts,
} from './template-texts.ts';

export interface RenderedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: string | null;
}

export interface TemplateProblem {
  /** Where in the request: `url`, `headers.X-Account`, `body.items.0.name`. */
  readonly path: string;
  readonly message: string;
}

/** The request can't be built from this input and these secrets. The message is for the model and for users. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError';
}

interface Given {
  /** It matches its schema, so a value that is missing is not required. */
  readonly input: unknown;
  /** Without a schema, every value is required. */
  readonly inputSchema?: unknown;
  readonly secrets: Readonly<Record<string, string>>;
  /** The end user of the session; null: it is for none. */
  readonly endUser: EndUser | null;
}

interface Values extends Given {
  readonly room: Room;
}

/** Remaining size of the request. It is counted part by part: a template can repeat a large value until it no longer fits in memory. */
interface Room {
  bytes: number;
}

/** The limit of URL, headers and body together, which is also the API's own. */
const REQUEST_MAX_BYTES = 1024 * 1024;

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** The characters that a header can contain: tabs and printable Latin-1. */
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** More than anyone fixes at once. */
const MAX_PROBLEMS = 20;

/** The problems of a template, at most 20, without the problems of `inputPlaceholders` and `foreignPlaceholders`. */
export function checkTemplate(template: RequestTemplate): TemplateProblem[] {
  const problems: TemplateProblem[] = [];
  const problem = (path: string, message: string) => {
    if (problems.length < MAX_PROBLEMS) problems.push({ path, message });
  };
  const checkText = (path: string, text: string) => {
    if (problems.length === MAX_PROBLEMS) return;
    const parts = splitPlaceholders(text);
    const stray = strayBraces(parts);
    if (stray !== undefined)
      problem(
        path,
        `holds ${stray}, which is not {{input.x}}, {{secrets.NAME}}, {{session.endUser.id}} or {{session.endUser.name}}, without spaces and NAME in capitals`,
      );
  };
  checkText('url', template.url);
  for (const message of urlProblems(template.url)) problem('url', message);
  for (const [name, value] of Object.entries(template.headers ?? {})) {
    const path = `headers.${name}`;
    if (!HEADER_NAME.test(name)) problem(path, 'is not the name of a header');
    if (CONNECTION_HEADERS.has(name.toLowerCase()) || name.toLowerCase() === 'idempotency-key')
      problem(path, 'is set by the service');
    if (!HEADER_VALUE.test(value)) problem(path, 'holds a character that a header can’t carry');
    checkText(path, value);
  }
  if (template.body === undefined) return problems;
  if (template.method === 'GET' || template.method === 'HEAD') problem('body', `can’t be sent with ${template.method}`);
  const body = bodyTemplate(template);
  if (body.format === 'broken')
    problem(
      'body',
      'is not JSON, though its content type says so; put placeholders in quotes: "{{input.n}}" keeps its JSON type',
    );
  if ('value' in body) {
    visitStrings(body.value, 'body', (path, text, isName) => {
      if (text === null) problem(path, `is nested deeper than ${BODY_MAX_DEPTH} levels`);
      else if (isName && text.includes('{{')) problem(path, 'has a placeholder in a name, where none may stand');
      else checkText(path, text);
    });
  }
  return problems;
}

/** What looks like a placeholder of another notation, and would be sent as it is. At most 20. */
export function foreignPlaceholders(template: RequestTemplate): TemplateProblem[] {
  const problems: TemplateProblem[] = [];
  const instead = '{{input.x}}, {{secrets.NAME}} or {{session.endUser.id}}';
  visitTexts(template, (path, text) => {
    if (problems.length === MAX_PROBLEMS) return;
    const found = foreignPlaceholder(splitPlaceholders(text), path === 'url');
    if (found) problems.push({ path, message: `has ${found}, which is not a placeholder: write it as ${instead}` });
  });
  return problems;
}

/**
 * Fills in a template in which `checkTemplate` found no problems. `input` is the model's; `secrets` are those that may be sent to
 * this host. Throws `TemplateError` if a value is missing or not allowed at its place, or if the request is longer than 1 MiB.
 */
export function renderRequest(template: RequestTemplate, given: Given): RenderedRequest {
  const { method } = template;
  const values: Values = { ...given, room: { bytes: REQUEST_MAX_BYTES } };
  const url = renderUrl(template.url, values);
  const headers: Record<string, string> = {};
  for (const [name, text] of Object.entries(template.headers ?? {})) {
    if (isLeftOut(text, values)) continue;
    headers[name] = fillIn(text, values.room, (placeholder) => {
      const value = textOf(placeholder, values);
      if (HEADER_VALUE.test(value)) return value;
      throw new TemplateError(
        `${placeholder.text} contains a line break, or a character that is not allowed in the header ${name}`,
      );
    });
  }
  const { body, contentType } = renderBody(template, values);
  if (contentType !== null && contentTypeOf({ headers }) === undefined) headers['content-type'] = contentType;
  // The result is measured again: the structure and escapes of JSON were not counted.
  const room = { bytes: REQUEST_MAX_BYTES };
  for (const text of [url, ...Object.entries(headers).flat(), body ?? '']) take(room, text);
  return { method, url, headers, body };
}

// Placeholders

function valueFor({ text, source, path }: Placeholder, values: Values): unknown {
  const value = valueAt(path, source === 'session' ? { endUser: values.endUser } : values[source]);
  if (value !== undefined) return value;
  if (source === 'secrets') throw new TemplateError(`the secret ${path.join('.')} is missing`);
  const why = source === 'session' && values.endUser === null ? ': the session has no end user' : '';
  throw new TemplateError(`${text} is missing${why}`);
}

/** Undefined if there is none. */
function valueAt(path: readonly string[], whole: unknown): unknown {
  return path.reduce((value, name) => (isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined), whole);
}

/** Whether a text consists only of a value that is optional and was left out. */
function isLeftOut(text: string, { input, inputSchema, endUser }: Values): boolean {
  const placeholder = lonePlaceholder(text);
  if (placeholder?.source === 'session') return placeholder.path.at(-1) === 'name' && endUser?.name === undefined;
  if (placeholder?.source !== 'input' || valueAt(placeholder.path, input) !== undefined) return false;
  // A name that the schema does not have is a mistake, not an optional value.
  return placeholder.path.reduce(propertyOf, inputSchema) !== undefined;
}

/** The schema of a property, or of the items of an array; undefined if the schema has none. */
function propertyOf(schema: unknown, name: string): unknown {
  if (!isObject(schema)) return undefined;
  const { properties, items } = schema;
  if (isObject(properties) && Object.hasOwn(properties, name)) return properties[name];
  return /^\d+$/.test(name) ? items : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** The text with each placeholder replaced by the result of `fill`. */
function fillIn(text: string, room: Room, fill: (placeholder: Placeholder) => string): string {
  return splitPlaceholders(text)
    .map((part) => take(room, typeof part === 'string' ? part : fill(part)))
    .join('');
}

function take(room: Room, text: string): string {
  room.bytes -= Buffer.byteLength(text);
  if (room.bytes >= 0) return text;
  throw new TemplateError(`the request would be longer than ${REQUEST_MAX_BYTES} bytes`);
}

/** A placeholder's value as text. Throws if it is missing, or is not a string, number or boolean. */
function textOf(placeholder: Placeholder, values: Values): string {
  const value = valueFor(placeholder, values);
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw new TemplateError(`${placeholder.text} is ${value === null ? 'null' : 'not a string, number or boolean'}`);
}

/** Leaves only letters, digits, `-`, `_`, `.` and `~`, which have no special meaning in a URL. */
function percentEncode(value: string): string {
  return encodeURIComponent(value.toWellFormed()).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

// URL

function urlProblems(text: string): string[] {
  const literal = splitPlaceholders(text).map((part) => (typeof part === 'string' ? part : 'x'));
  const origin = /^https?:\/\/[^/?#]+/i.exec(text)?.[0];
  if (origin === undefined) return ['is not an http or https url'];
  if (origin.includes('{{')) return ['has a placeholder in its host or port, where none may stand'];
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the URL parser drops some of them, so they are refused before
  if (/[\u0000-\u0020\u007f\\#]/.test(text)) return ['holds a space, a control character, a backslash or a fragment'];
  // Otherwise "%2{{input.x}}" would let the value choose which character it is.
  if (literal.some((part) => /%(?![\da-f]{2})/i.test(part)))
    return ['holds a % that is not followed by two hex digits'];
  return URL.canParse(literal.join('')) ? [] : ['does not parse'];
}

function renderUrl(text: string, values: Values): string {
  const encoded = (part: string) =>
    fillIn(part, values.room, (placeholder) => percentEncode(textOf(placeholder, values)));
  const [path = '', ...rest] = text.split('?');
  const query = rest.length === 0 ? null : givenParameters(rest.join('?'), values);
  const segments = path.split('/').map((segment) => {
    const rendered = encoded(segment);
    if (rendered !== segment) assertSegment(segment, rendered);
    return rendered;
  });
  const rendered = segments.join('/') + (query === null ? '' : `?${encoded(query)}`);
  // Checks the purpose of the rules above on their result: the same host, and the same number of segments and parameters.
  const expected = outline(fillIn(query === null ? path : `${path}?${query}`, { bytes: REQUEST_MAX_BYTES }, () => 'x'));
  if (expected === null || outline(rendered) !== expected)
    throw new TemplateError('the values would change the destination of the URL');
  return rendered;
}

/** A query or a form without the parameters that are left out; null if none remains. */
function givenParameters(text: string, values: Values): string | null {
  const given = text.split('&').filter((parameter) => {
    const [name = '', ...value] = parameter.split('=');
    return value.length === 0 || hasPlaceholder(name) || !isLeftOut(value.join('='), values);
  });
  return given.length === 0 ? null : given.join('&');
}

function assertSegment(segment: string, rendered: string): void {
  // Some servers decode the path before they parse it, so segments behind %2F and %5C are checked as well.
  const pieces = rendered.replaceAll(/%2e/gi, '.').split(/\/|\\|%2f|%5c/i);
  if (rendered !== '' && !pieces.some((piece) => piece === '.' || piece === '..')) return;
  const names = splitPlaceholders(segment).flatMap((part) => (typeof part === 'string' ? [] : [part.text]));
  throw new TemplateError(`${names.join(' and ')} would result in an empty, "." or ".." segment in the URL’s path`);
}

function outline(text: string): string | null {
  const url = URL.parse(text);
  return url && JSON.stringify([url.origin, url.pathname.split('/').length, url.search.split('&').length]);
}

// Body

function renderBody(template: RequestTemplate, values: Values): { body: string | null; contentType: string | null } {
  const body = bodyTemplate(template);
  if (body.format === 'broken') throw new TemplateError('the body is not JSON, although its content type is');
  if (body.format === 'none') return { body: null, contentType: null };
  if (body.format === 'json') {
    return { body: JSON.stringify(renderJson(body.value, values)), contentType: 'application/json' };
  }
  const [encode, given] =
    body.format === 'form'
      ? [percentEncode, givenParameters(body.value, values) ?? '']
      : [(value: string) => value, body.value];
  const text = fillIn(given, values.room, (placeholder) => encode(textOf(placeholder, values)));
  return { body: text, contentType: 'text/plain; charset=utf-8' };
}

function renderJson(value: unknown, values: Values): unknown {
  if (typeof value === 'string') {
    const placeholder = lonePlaceholder(value);
    if (placeholder !== null) {
      const whole = valueFor(placeholder, values);
      take(values.room, JSON.stringify(whole));
      return whole;
    }
    return fillIn(value, values.room, (placeholder) => textOf(placeholder, values));
  }
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: unknown) => renderJson(item, values));
  const given = Object.entries(value).filter(([, item]) => typeof item !== 'string' || !isLeftOut(item, values));
  return Object.fromEntries(given.map(([name, item]) => [name, renderJson(item, values)]));
}
