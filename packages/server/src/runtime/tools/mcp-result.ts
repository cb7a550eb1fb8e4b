// Converts the result of an MCP tool into what the model gets.
//
//   structuredContent       that, as JSON: the text next to it has the same content
//   only text               the text
//   text and other parts    a list: texts and resources as they are; images, audio and other bytes are files
//   isError                 an error with the text

import { type Redact, said } from './redact.ts';
import { beginningOf, shownJson, shownText, uncertain } from './result.ts';
import { ReturnedFile } from './returned-file.ts';
import type { ToolOutcome } from './tool.ts';

export function mcpOutcome(result: unknown, redact: Redact): ToolOutcome {
  const { content, structuredContent, isError } = (result ?? {}) as Record<string, unknown>;
  const parts = Array.isArray(content) ? content.map(partOf) : [];
  if (isError === true) {
    const said = shownJson(parts.length > 0 ? spoken(parts.map(withoutBytes)) : structuredContent, redact);
    const text = typeof said === 'string' ? said : said === undefined ? '' : JSON.stringify(said);
    return { error: text.trim() === '' ? 'The tool failed without a message.' : beginningOf(text) };
  }
  if (structuredContent !== undefined) {
    const shown = shownJson(structuredContent, redact);
    const files = parts.flatMap((part) => fileIn(part, redact) ?? []);
    return { output: files.length === 0 ? shown : [shown, ...files] };
  }
  if (parts.length > 0) {
    const whole = spoken(parts);
    if (typeof whole === 'string') return { output: shownJson(whole, redact) };
    return { output: whole.map((part) => fileIn(part, redact) ?? shownJson(part, redact)) };
  }
  if (Array.isArray(content)) return { output: null };
  return uncertain(said`The server’s response can’t be used: it has no content.`);
}

type Part = Record<string, unknown>;

/** Text, if there is nothing else. */
function spoken(parts: readonly Part[]): string | readonly Part[] {
  if (parts.every(({ type, text }) => type === 'text' && typeof text === 'string'))
    return parts.map(({ text }) => text).join('\n');
  return parts;
}

/** One part of the content, without the fields that are only for clients. */
function partOf(item: unknown): Part {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return { type: 'unknown', value: item };
  const { _meta, annotations, icons, ...part } = item as Part;
  switch (part.type) {
    case 'resource': {
      if (typeof part.resource !== 'object' || part.resource === null) return part;
      const { _meta, annotations, ...resource } = part.resource as Part;
      return { type: 'resource', ...resource };
    }
    default:
      return part;
  }
}

/** The file in a part of the content; undefined if it has none. */
function fileIn(part: Part, redact: Redact): ReturnedFile | undefined {
  const base64 = bytesIn(part);
  if (base64 === undefined) return undefined;
  const { data, blob, ...rest } = part;
  const { mimeType, uri } = part;
  const text = typeof base64 === 'string' ? base64 : '';
  const bytes = Buffer.byteLength(text, 'base64');
  const file = {
    content: decoded(text),
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
  const base64 = bytesIn(part);
  if (base64 === undefined) return part;
  const { data, blob, ...rest } = part;
  const bytes = typeof base64 === 'string' ? Buffer.byteLength(base64, 'base64') : 0;
  return { ...rest, bytes, note: 'the bytes are not shown' };
}

function bytesIn({ type, data, blob }: Part): unknown {
  if (type === 'image' || type === 'audio') return data ?? null;
  return type === 'resource' ? blob : undefined;
}
