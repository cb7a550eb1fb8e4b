// Converts the result of an MCP tool into what the model gets. Nothing of it is lost, and nothing is there twice.
//
//   only text               the text
//   text and other parts    a list: texts and resources as they are; images, audio and other bytes are files
//   structuredContent       that, as JSON
//   both                    a list: the structured content, and the parts that say something else
//   isError                 an error with the text and the structured content
//
// Servers of other revisions, and careless ones, also send `toolResult`, a text in place of the list, or only fields of their own.
import { isDeepStrictEqual } from 'node:util';
import { parseJson } from '../../lib/json/json.ts';
import { type Redact, trustedText } from '../tool/redact.ts';
import { beginningOf, outcomeUnknown, shownJson, shownText } from '../tool/result.ts';
import { ReturnedFile } from '../tool/returned-file.ts';
import type { ToolOutcome } from '../tool/tool.ts';

/** How many values of structured content are compared with each text. Wrappers have one. */
const MAX_COMPARED = 20;

export function mcpOutcome(result: unknown, redact: Redact): ToolOutcome {
  const { _meta, resultType, isError, content, structuredContent, toolResult, ...others } = objectIn(result) ?? {};
  const parts = content === undefined || content === null ? [] : [content].flat().flatMap(partsOf);
  const isAlone = parts.length === 0 && Object.keys(others).length > 0;
  const data = structuredContent ?? toolResult ?? (isAlone ? others : undefined);
  const own = data === undefined ? parts : partsBeside(data, parts);
  if (isError === true) return { error: errorText(own, data, redact) };
  if (data !== undefined) {
    const shown = shownJson(data, redact);
    return { output: own.length === 0 ? shown : [shown, ...own.map((part) => shownPart(part, redact))] };
  }
  if (parts.length > 0) {
    const text = textOf(parts);
    return { output: text === undefined ? parts.map((part) => shownPart(part, redact)) : shownText(text, redact) };
  }
  if (Array.isArray(content) || structuredContent === null) return { output: null };
  return outcomeUnknown(trustedText`The server’s response can’t be used: it has no content.`);
}

type Part = Record<string, unknown>;

function objectIn(value: unknown): Part | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Part) : undefined;
}

/** The text of the parts, if they have nothing else. */
function textOf(parts: readonly Part[]): string | undefined {
  const texts = parts.flatMap((part) => (isText(part) && part.audience === undefined ? [part.text] : []));
  return texts.length === parts.length ? texts.join('\n') : undefined;
}

function isText(part: Part): part is Part & { text: string } {
  return part.type === 'text' && typeof part.text === 'string';
}

/** Each half has the length of an error, so that one can't cut off the other. */
function errorText(parts: readonly Part[], data: unknown, redact: Redact): string {
  const described = parts.map(withoutBytes).map(({ audience, ...part }) => part);
  const halves = [described.length === 0 ? undefined : (textOf(described) ?? described), data]
    .filter((half) => half !== undefined)
    .map((half) => shownJson(half, redact))
    .map((half) => beginningOf(typeof half === 'string' ? half : JSON.stringify(half)));
  const text = halves.filter((half) => half.trim() !== '').join('\n');
  return text === '' ? 'The tool failed without a message.' : text;
}

/** The parts without the texts that repeat the structured content, as servers should send for clients that don't know it. */
function partsBeside(data: unknown, parts: readonly Part[]): readonly Part[] {
  const members = Object.values(objectIn(data) ?? {});
  // A value that is not an object is wrapped in one, and its text is only the value.
  const values = members.length > MAX_COMPARED ? [data] : [data, ...members];
  const texts = parts.filter(isText).map(({ text }) => ({ text: text.trim(), value: parseJson(withoutFence(text)) }));
  const isFor = (value: unknown, one: (typeof texts)[number] | undefined) =>
    (typeof value === 'string' && value.trim() === one?.text) ||
    (one?.value !== undefined && isDeepStrictEqual(value, one.value));
  const isListed = values.some(
    (list) => Array.isArray(list) && list.length === texts.length && list.every((item, at) => isFor(item, texts[at])),
  );
  let index = 0;
  return parts.filter((part) => {
    if (!isText(part)) return true;
    const text = texts[index++];
    return !isListed && !values.some((value) => isFor(value, text));
  });
}

/** JSON in a block of Markdown. */
function withoutFence(text: string): string {
  const trimmed = text.trim();
  if (!trimmed.startsWith('```') || !trimmed.endsWith('```')) return trimmed;
  return trimmed.slice(trimmed.indexOf('\n') + 1, -3);
}

/** The parts of one item of the content, without the fields that are only for clients. */
function partsOf(item: unknown): Part[] {
  if (typeof item === 'string') return [{ type: 'text', text: item }];
  const { _meta, annotations, icons, ...part } = objectIn(item) ?? { type: 'unknown', value: item };
  const forOthers = audienceIn(annotations);
  const resource = part.type === 'resource' ? objectIn(part.resource) : undefined;
  if (!resource) return [{ ...part, ...forOthers }];
  const { _meta: _, annotations: own, text, blob, ...named } = resource;
  const description = { type: 'resource', ...named, ...(forOthers ?? audienceIn(own)) };
  return [
    ...(text !== undefined || blob === undefined ? [{ ...description, ...(text !== undefined && { text }) }] : []),
    ...(blob === undefined ? [] : [{ ...description, blob }]),
  ];
}

/** For whom a part is, if not for the model. */
function audienceIn(annotations: unknown): { audience: unknown[] } | undefined {
  const audience = objectIn(annotations)?.audience;
  return Array.isArray(audience) && audience.length > 0 && !audience.includes('assistant') ? { audience } : undefined;
}

function shownPart(part: Part, redact: Redact): unknown {
  return fileIn(part, redact) ?? shownJson(part, redact);
}

/** The file in a part of the content; undefined if it has none. */
function fileIn(part: Part, redact: Redact): ReturnedFile | undefined {
  const base64 = base64In(part);
  if (base64 === undefined) return undefined;
  const { data, blob, ...rest } = part;
  const { mimeType, uri } = part;
  const bytes = Buffer.byteLength(base64, 'base64');
  const file = {
    content: decoded(base64),
    length: bytes,
    mediaType: typeof mimeType === 'string' ? mimeType : undefined,
    filename: typeof uri === 'string' ? shownText(uri, redact) : undefined,
  };
  return new ReturnedFile(file, { ...(shownJson(rest, redact) as Part), bytes });
}

async function* decoded(base64: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(base64, 'base64');
}

/** Base64 means nothing to a model that reads text, and would fill its context. */
function withoutBytes(part: Part): Part {
  const base64 = base64In(part);
  if (base64 === undefined) return part;
  const { data, blob, ...rest } = part;
  return { ...rest, bytes: Buffer.byteLength(base64, 'base64'), note: 'the bytes are not shown' };
}

function base64In({ type, data, blob, mimeType }: Part): string | undefined {
  const value = type === 'resource' ? blob : data;
  if (typeof value !== 'string') return undefined;
  const base64 = value.replace(/^data:[^,]{0,200};base64,/, '');
  if (['image', 'audio', 'resource'].includes(String(type))) return base64;
  // A type that is not known, such as `video`.
  const isOfBytes = typeof mimeType === 'string' && !/^text\/|json|xml/.test(mimeType);
  return isOfBytes && /^[A-Za-z0-9+/]+={0,2}$/.test(base64) ? base64 : undefined;
}
