// The files of a transcript in a request to a model.
//
// The transcript names its files. Their bytes are loaded for one request, the newest first, as far as the request may have them, and are
// in memory only until the request is sent (lib/memory.ts).
//
// A file that the model does not get is described instead: one that it does not take, that was deleted or left out, or that no longer fits. A
// conversation therefore never fails because of a file that it has.
import type { LanguageModelV4FilePart, LanguageModelV4TextPart } from '@ai-sdk/provider';
import { countFiles, type FilePart, inputMediaOf, maxRequestFileBytes, whyNotSupported } from '@signalbox/contract';
import { type OpenFile, openUsedFiles } from '../../files/content.ts';
import { offsetOfPdf, textDecoderOf } from '../../files/media-type.ts';
import { uuidOf } from '../../lib/ids.ts';
import { holdMemory } from '../../lib/memory.ts';
import { storableText } from '../../lib/text.ts';
import type { Platform } from '../../platform.ts';
import { type FileOf, type RefusedMedia, refusedMediaOf } from '../failure/refused-file.ts';
import { type ModelCall, ModelFailure } from '../model/model.ts';
import { filesOf } from './file-parts.ts';
import { imagesLeftOut } from './image-sides.ts';

/** Providers accept 20 to some thousands of images; more cost much and help little. */
const FILES_MAX = 50;
/** A model reads text without end badly. More of it is for tools. */
const TEXT_MAX_BYTES = 256 * 1024;

/** How often each byte is in memory: in base64, in the body of the request, in the bytes that are sent. */
const COPIES = 4;

export type PromptPart = LanguageModelV4TextPart | LanguageModelV4FilePart;

export interface PromptFiles {
  /**
   * A file as the model gets it: its description, and its content if the model gets it. To be called in the order of the transcript:
   * a file that is named again is only described, so that a request has each content once.
   */
  partsOf(file: FilePart): PromptPart[];
  /** The file with this content, in base64, if the model gets it. */
  fileOf: FileOf;
  /** The kinds of files that the model gets, besides text. */
  media: ReadonlySet<RefusedMedia>;
  /** These files with placeholders as contents, as they were before any was requested. */
  withPlaceholders(): PromptFiles;
  /** To be called once the request is sent. */
  release(): void;
}

/** Throws a retryable ModelFailure if files can't be read now, and the signal's reason. */
export async function loadPromptFiles(
  platform: Pick<Platform, 'db' | 'files' | 'memory'>,
  call: ModelCall,
  signal: AbortSignal,
): Promise<PromptFiles> {
  const { notes, wanted } = chooseFiles(call);
  const contents = new Map<string, string>();
  const bytes = wanted.reduce((sum, file) => sum + sizeOf(file), 0);
  const held = holdMemory(platform.memory, call.organizationId, signal);
  if (bytes > 0) await held.take(COPIES * bytes);
  try {
    if (wanted.length > 0) await loadContents(platform, call, wanted, { notes, contents }, signal);
  } catch (error) {
    held.release();
    signal.throwIfAborted();
    throw error instanceof ModelFailure ? error : unreadable();
  }
  return promptFiles({ notes, contents, wanted }, held.release);
}

/** The files of a request that is shown and not sent: a placeholder in place of each content. */
export function placeholderFiles(call: ModelCall): PromptFiles & { count: number } {
  const { notes, wanted } = chooseFiles(call);
  const contents = placeholders(wanted.map(({ fileId }) => fileId));
  return { ...promptFiles({ notes, contents, wanted }, () => {}), count: wanted.length };
}

const placeholders = (fileIds: readonly string[]) => new Map(fileIds.map((fileId) => [fileId, `{{files.${fileId}}}`]));

function promptFiles(
  {
    notes,
    contents,
    wanted,
  }: { notes: Map<string, string>; contents: Map<string, string>; wanted: readonly FilePart[] },
  release: () => void,
): PromptFiles {
  const sent: { file: FilePart; content: string }[] = [];
  const first = { notes: new Map(notes), fileIds: [...contents.keys()] };
  const media = wanted.flatMap(({ fileId, mediaType }) => (contents.has(fileId) ? refusedMediaOf(mediaType) : []));
  return {
    release,
    media: new Set(media),
    withPlaceholders: () =>
      promptFiles({ notes: new Map(first.notes), contents: placeholders(first.fileIds), wanted }, () => {}),
    fileOf: (text) => sent.find(({ content }) => content === text)?.file,
    partsOf(file) {
      const content = contents.get(file.fileId);
      if (contents.delete(file.fileId)) notes.set(file.fileId, 'its content is above');
      if (content === undefined) return [textPart(describe(file, notes.get(file.fileId) ?? 'it is not available'))];
      if (isText(file)) return [textPart(`${describe(file)}\n${content}`)];
      const { mediaType, filename } = file;
      sent.push({ file, content });
      return [
        textPart(describe(file)),
        { type: 'file', mediaType, data: { type: 'data', data: content }, ...(filename !== undefined && { filename }) },
      ];
    },
  };
}

/** The newest come first. `notes` say why the model does not get the others. */
function chooseFiles({ transcript, config, withoutFiles = [], refusedFiles = [] }: ModelCall): {
  notes: Map<string, string>;
  wanted: FilePart[];
} {
  const notes = new Map<string, string>();
  const wanted = new Map<string, FilePart>();
  const maxBytes = maxRequestFileBytes(config.provider);
  const count = countFiles(config.provider);
  let bytes = 0;
  let isFull = false;
  for (const file of transcript.toReversed().flatMap(({ content }) => content.toReversed().flatMap(filesOf))) {
    if (wanted.has(file.fileId) || notes.has(file.fileId)) continue;
    const why = withoutFiles.includes(file.fileId)
      ? 'it was left out on request'
      : refusedFiles.includes(file.fileId)
        ? 'the provider of its model refused it'
        : whyNotSupported(config, file);
    if (why !== undefined) {
      notes.set(file.fileId, why);
      continue;
    }
    const most = isFull ? undefined : count(file.mediaType);
    if (most !== undefined) {
      notes.set(file.fileId, `only the newest ${most} are shown`);
      continue;
    }
    // None that is older than one that does not fit: which ones the model gets should not depend on their sizes.
    isFull ||= wanted.size === FILES_MAX || bytes + sizeOf(file) > maxBytes;
    if (isFull) {
      notes.set(file.fileId, 'only the newest files of the conversation are shown');
      continue;
    }
    bytes += sizeOf(file);
    wanted.set(file.fileId, file);
  }
  return { notes, wanted: [...wanted.values()] };
}

async function loadContents(
  platform: Pick<Platform, 'db' | 'files'>,
  { organizationId, sessionId, config }: ModelCall,
  wanted: readonly FilePart[],
  { notes, contents }: { notes: Map<string, string>; contents: Map<string, string> },
  signal: AbortSignal,
): Promise<void> {
  const idOf = new Map(wanted.map(({ fileId }) => [fileId, uuidOf('file', fileId)]));
  const files = await openUsedFiles(platform, organizationId, uuidOf('ses', sessionId), [...idOf.values()]);
  for (const part of wanted) {
    const file = files.get(idOf.get(part.fileId)!);
    // Files never change. A tool's server can write a result that looks like a file.
    if (file?.bytes !== part.bytes || file.mediaType !== part.mediaType) notes.set(part.fileId, 'it was deleted');
    else contents.set(part.fileId, await contentOf(file, part, signal));
    signal.throwIfAborted();
  }
  const images = wanted.flatMap(({ fileId, mediaType }) => {
    const content = contents.get(fileId);
    return content !== undefined && inputMediaOf(mediaType) === 'image' ? [{ fileId, content }] : [];
  });
  for (const [fileId, why] of imagesLeftOut(config.provider, images)) {
    contents.delete(fileId);
    notes.set(fileId, why);
  }
}

async function contentOf(file: OpenFile, part: FilePart, signal: AbortSignal): Promise<string> {
  if (isText(part)) return textOf(file, signal);
  const content = await base64Of(file, signal);
  return inputMediaOf(part.mediaType) === 'pdf' ? withoutLead(content) : content;
}

/** Not every provider looks for the beginning of a PDF behind other bytes. */
function withoutLead(base64: string): string {
  const offset = offsetOfPdf(Buffer.from(base64.slice(0, 2048), 'base64'));
  return offset > 0 ? Buffer.from(base64, 'base64').toString('base64', offset) : base64;
}

async function textOf(file: OpenFile, signal: AbortSignal): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of file.read({ start: 0, end: Math.min(file.bytes, TEXT_MAX_BYTES) }, signal))
    pieces.push(piece);
  // A character that is cut in two is left out.
  const text = storableText(textDecoderOf(file.mediaType).decode(Buffer.concat(pieces)));
  if (file.bytes <= TEXT_MAX_BYTES) return text;
  return `${text.replace(/\uFFFD$/, '')}\n[only the first ${TEXT_MAX_BYTES / 1024} KiB are shown]`;
}

/** In pieces, so that the bytes themselves are never in memory as a whole. */
async function base64Of(file: OpenFile, signal: AbortSignal): Promise<string> {
  let text = '';
  let rest: Uint8Array = new Uint8Array(0);
  for await (const piece of file.read(undefined, signal)) {
    const bytes = rest.length === 0 ? Buffer.from(piece) : Buffer.concat([rest, piece]);
    const whole = bytes.length - (bytes.length % 3);
    text += bytes.toString('base64', 0, whole);
    rest = bytes.subarray(whole);
  }
  return text + Buffer.from(rest).toString('base64');
}

const isText = ({ mediaType }: FilePart) => inputMediaOf(mediaType) === 'text';

function sizeOf(file: FilePart): number {
  return isText(file) ? Math.min(file.bytes, TEXT_MAX_BYTES) : file.bytes;
}

/** With its id, so that the model can name it in a call of a tool. */
function describe({ fileId, filename, mediaType, bytes }: FilePart, why?: string): string {
  const name = filename === undefined ? '' : ` ${JSON.stringify(filename)}`;
  return `[file ${fileId}:${name} ${mediaType}, ${bytes} bytes${why === undefined ? '' : `; not shown: ${why}`}]`;
}

function textPart(text: string): LanguageModelV4TextPart {
  return { type: 'text', text };
}

function unreadable(): ModelFailure {
  return new ModelFailure('model_unavailable', 'The files of the conversation could not be read', { retryable: true });
}
