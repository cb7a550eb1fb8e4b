// Converts the result of an MCP tool into what the model gets.
//
//   structuredContent       that, as JSON: the text next to it has the same content
//   only text               the text
//   text and other parts    a list: texts and resources as they are; images, audio and other bytes are described
//   isError                 an error with the text

import { type Redact, said } from './redact.ts';
import { beginningOf, shownJson, uncertain } from './result.ts';
import type { ToolOutcome } from './tool.ts';

export function mcpOutcome(result: unknown, redact: Redact): ToolOutcome {
  const { content, structuredContent, isError } = (result ?? {}) as Record<string, unknown>;
  const parts = Array.isArray(content) ? content.map(partOf) : [];
  if (isError === true) {
    const said = shownJson(parts.length > 0 ? spoken(parts) : structuredContent, redact);
    const text = typeof said === 'string' ? said : said === undefined ? '' : JSON.stringify(said);
    return { error: text.trim() === '' ? 'The tool failed without a message.' : beginningOf(text) };
  }
  if (structuredContent !== undefined) return { output: shownJson(structuredContent, redact) };
  if (parts.length > 0) return { output: shownJson(spoken(parts), redact) };
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
    case 'image':
    case 'audio':
      return { type: part.type, mimeType: part.mimeType, ...described(part.data) };
    case 'resource': {
      if (typeof part.resource !== 'object' || part.resource === null) return part;
      const { _meta, annotations, blob, ...resource } = part.resource as Part;
      return { type: 'resource', ...resource, ...(blob !== undefined && described(blob)) };
    }
    default:
      return part;
  }
}

/** Base64 means nothing to a model that reads text, and would fill its context. */
function described(base64: unknown): Part {
  return {
    bytes: typeof base64 === 'string' ? Buffer.byteLength(base64, 'base64') : 0,
    note: 'the bytes are not shown',
  };
}
