// How many tokens messages take, estimated, and how messages that are too long for a model are cut.
//
// No provider says beforehand how many tokens a text has. What is estimated here are the bytes of its UTF-8, with few enough of them
// for a token that the estimate is rarely too low: English has four to five bytes for a token, source code and JSON about three,
// Chinese, Japanese and Korean about three. What is too low anyway is corrected by what the provider reports after each call, and
// by its refusal of a call that is too long (compaction.ts).
import { inputMediaOf, type MessagePart } from '@signalbox/contract';
import { jsonOf } from '../lib/json/json-text.ts';
import type { ModelEntry } from '../models/model/model.ts';
import { filesOf } from '../models/prompt/file-parts.ts';

const BYTES_PER_TOKEN = 3;
/** What a provider puts around a message or a part of it: its role, ids, delimiters. */
const FRAME_BYTES = 8 * BYTES_PER_TOKEN;

/** Messages never change, and each step adds few: what was measured or cut once is kept. */
const measured = new WeakMap<object, number>();
const cuts = new WeakMap<object, { maxTokens: number; entry: ModelEntry }>();

export function tokensOfBytes(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

export function tokensOfText(text: string): number {
  return tokensOfBytes(Buffer.byteLength(text));
}

export function tokensOfAll(entries: readonly ModelEntry[]): number {
  return entries.reduce((sum, entry) => sum + tokensOfEntry(entry), 0);
}

/** The JSON of values that are measured and then cut: a result has up to a MiB of it. */
type JsonTexts = Map<unknown, string>;

export function tokensOfEntry(entry: ModelEntry, texts?: JsonTexts): number {
  const known = measured.get(entry);
  if (known !== undefined) return known;
  const { content, providerData } = entry;
  const data =
    providerData === undefined || providerData === null ? 0 : Buffer.byteLength(JSON.stringify(providerData));
  const tokens = tokensOfBytes(content.reduce((sum, part) => sum + bytesOf(part, texts), FRAME_BYTES + data));
  measured.set(entry, tokens);
  return tokens;
}

/** The entry, or a copy that takes at most so many tokens, with a note in each part that was cut. */
export function cutEntry<E extends ModelEntry>(entry: E, maxTokens: number): E {
  const texts: JsonTexts = new Map();
  if (tokensOfEntry(entry, texts) <= maxTokens) return entry;
  const known = cuts.get(entry);
  if (known?.maxTokens === maxTokens) return known.entry as E;
  const { content } = entry;
  const sizes = content.map((part) => bytesOf(part, texts));
  const maxBytes = fairShare(sizes, maxTokens * BYTES_PER_TOKEN - FRAME_BYTES);
  const cut = {
    ...entry,
    content: content.map((part, index) =>
      sizes[index]! <= maxBytes ? part : cutPart(part, maxBytes - FRAME_BYTES, texts),
    ),
    // It describes the whole response.
    providerData: undefined,
  };
  cuts.set(entry, { maxTokens, entry: cut });
  return cut;
}

/** The most that each may have, so that all together have at most `total`: small ones leave more for the others. */
function fairShare(sizes: readonly number[], total: number): number {
  let left = total;
  for (const [index, size] of sizes.toSorted((a, b) => a - b).entries()) {
    const share = Math.floor(left / (sizes.length - index));
    if (size > share) return share;
    left -= size;
  }
  return Number.POSITIVE_INFINITY;
}

function bytesOf(part: MessagePart, texts?: JsonTexts): number {
  const known = measured.get(part);
  if (known !== undefined) return known;
  const ofFiles = filesOf(part).reduce((sum, file) => sum + tokensOfFile(file) * BYTES_PER_TOKEN, 0);
  const bytes = FRAME_BYTES + ofFiles + textsOf(part, texts).reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  measured.set(part, bytes);
  return bytes;
}

/** What a model reads of a part. */
function textsOf(part: MessagePart, texts?: JsonTexts): string[] {
  switch (part.type) {
    case 'text':
      return [part.text, sourcesText(part)];
    case 'tool_call':
      return [part.toolCallId, part.tool, json(part.input, texts)];
    case 'file':
      return [part.filename ?? ''];
    case 'tool_result':
      return [part.toolCallId, ...(part.input === undefined ? [] : [json(part.input, texts)]), resultText(part, texts)];
  }
}

/** What an answer cites, for a summary of it. */
export function sourcesText({ sources = [] }: Extract<MessagePart, { type: 'text' }>): string {
  const named = sources.map(({ url, title }) => [title, url].filter((one) => one !== undefined).join(': '));
  return named.length === 0 ? '' : `\n[Sources: ${named.join(', ')}]`;
}

type FilePart = Extract<MessagePart, { type: 'file' }>;

/** What providers count for an image, at its full size. */
const IMAGE_TOKENS = 1_600;
/** An estimate for a PDF or audio: pages and seconds have very different sizes. */
const MEDIA_BYTES_PER_TOKEN = 100;

function tokensOfFile({ mediaType, bytes }: FilePart): number {
  const media = inputMediaOf(mediaType);
  if (media === 'image') return IMAGE_TOKENS;
  return media === 'text' ? tokensOfBytes(bytes) : Math.max(IMAGE_TOKENS, Math.ceil(bytes / MEDIA_BYTES_PER_TOKEN));
}

export function fileText({ mediaType, bytes, filename }: FilePart): string {
  return `file${filename === undefined ? '' : ` ${filename}`} (${mediaType}, ${bytes} bytes)`;
}

export function resultText(
  { output, error }: Extract<MessagePart, { type: 'tool_result' }>,
  texts?: JsonTexts,
): string {
  return error ?? (typeof output === 'string' ? output : json(output, texts));
}

function json(value: unknown, texts?: JsonTexts): string {
  const text = texts?.get(value) ?? jsonOf(value);
  texts?.set(value, text);
  return text;
}

function cutPart(part: MessagePart, maxBytes: number, texts: JsonTexts): MessagePart {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: cutText(part.text, maxBytes) };
    case 'file':
      return { type: 'text', text: `[${fileText(part)}: too long for this model's context, it is not shown]` };
    case 'tool_call': {
      // As a string of JSON, a text of JSON takes up to twice its length.
      const left = maxBytes - Buffer.byteLength(`${part.toolCallId}${part.tool}{"cut":""}`);
      return { ...part, input: { cut: cutText(json(part.input, texts), Math.floor(left / 2)) } };
    }
    case 'tool_result': {
      const { input: _, output: __, error, ...rest } = part;
      const text = cutText(resultText(part, texts), maxBytes - Buffer.byteLength(part.toolCallId));
      return { ...rest, ...(error === undefined ? { output: text } : { error: text }) };
    }
  }
}

export function cutToTokens(text: string, maxTokens: number): string {
  return cutText(text, maxTokens * BYTES_PER_TOKEN);
}

/** Beginning and end of a text, with a note between them. Nothing of it if there is room for the note only. */
function cutText(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  const note = `\n[… ${bytes.length} bytes: too long for this model's context, only its beginning and end are shown …]\n`;
  const left = maxBytes - Buffer.byteLength(note);
  if (left <= 0) return '[…]';
  const beginning = Math.ceil((left * 2) / 3);
  // A character that is cut in two is left out.
  const first = bytes.toString('utf8', 0, beginning).replace(/\uFFFD$/, '');
  const last = bytes.toString('utf8', bytes.length - (left - beginning)).replace(/^\uFFFD+/, '');
  return first + note + last;
}
