/** What the adapters of frameworks share: the transcript, calls and failures of a turn as a model is to see them. */
import { NotFoundError, SignalboxError } from '../errors.ts';
import type { ClientTool, FilePart, MessagePart, ToolCallPart, ToolResultPart } from '../types.generated.ts';
import { TurnFailedError, TurnLostError } from './errors.ts';
import type { TurnResult } from './run.ts';
import type { Turn } from './turn.ts';

/** An entry of the transcript with what a model can read. None is empty. */
export type Entry =
  | { role: 'user'; messageId: string; parts: UserPart[] }
  | { role: 'assistant'; messageId: string; text: string; calls: ToolCallPart[] }
  | { role: 'tool'; messageId: string; results: EntryResult[] };

export type UserPart = { type: 'text'; text: string } | MediaPart;

/** An image or a PDF. */
export interface MediaPart {
  type: 'media';
  mediaType: string;
  filename: string;
  data: Uint8Array<ArrayBuffer>;
}

export interface EntryResult {
  toolCallId: string;
  tool: string;
  result: ModelResult;
}

/** The result of a call. `output` is undefined if only the text says what happened: after an error or an edited input. */
export interface ModelResult {
  readonly text: string;
  readonly isError: boolean;
  readonly output: unknown;
}

/** The transcript, with the content of the files that models can read. */
export async function entriesOf(turn: Turn): Promise<Entry[]> {
  const { messages } = turn;
  const parts = messages.flatMap(({ content }) => content);
  const calls = parts.filter(isOfModel);
  const toolOf = new Map(calls.map(({ toolCallId, tool }) => [toolCallId, tool]));
  const finished = new Set(parts.flatMap((part) => (part.type === 'tool_result' ? [part.toolCallId] : [])));
  const files = await readFiles(
    turn,
    messages.flatMap(({ role, content }) => (role === 'user' ? content.filter((part) => part.type === 'file') : [])),
  );
  return messages.flatMap(({ role, messageId, content }): Entry[] => {
    if (role === 'user') {
      const readable = content.flatMap((part): UserPart[] => {
        if (part.type === 'text') return [{ type: 'text', text: part.text }];
        return part.type === 'file' ? [files.get(part.fileId) ?? { type: 'text', text: nameOf(part) }] : [];
      });
      return readable.length === 0 ? [] : [{ role, messageId, parts: readable }];
    }
    if (role === 'tool') {
      const results = content.filter((part) => part.type === 'tool_result').map(toResult);
      return results.length === 0 ? [] : [{ role, messageId, results }];
    }
    const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
    const requested = content.filter(isOfModel);
    if (text === '' && requested.length === 0) return [];
    // Models refuse a transcript in which a call has no result.
    const missing = requested.filter(({ toolCallId }) => !finished.has(toolCallId));
    const error = 'The turn failed before this call had a result.';
    const results = missing.map(({ toolCallId }) => toResult({ type: 'tool_result', toolCallId, error }));
    return [
      { role, messageId, text, calls: requested },
      ...(results.length === 0 ? [] : [{ role: 'tool' as const, messageId: `${messageId}-results`, results }]),
    ];
  });

  function toResult(part: ToolResultPart): EntryResult {
    return { toolCallId: part.toolCallId, tool: toolOf.get(part.toolCallId) ?? '', result: modelResult(part) };
  }
}

/** A call that a provider ran itself has its result in the same message. */
function isOfModel(part: MessagePart): part is ToolCallPart {
  return part.type === 'tool_call' && part.by === undefined;
}

/** The limit for all files of a prompt together. A base64 text of it is within what providers accept. */
const maxPromptFileBytes = 20 * 1024 * 1024;

/** By id. The newest first, up to the limit; a model sees only the names of the others. */
async function readFiles(turn: Turn, files: readonly FilePart[]): Promise<Map<string, UserPart>> {
  const read = new Map<string, UserPart>();
  let bytes = 0;
  for (const file of files.toReversed()) {
    const { fileId, mediaType, filename = fileId } = file;
    const isText = /^text\/|^application\/(json|xml)(;|$)/.test(mediaType);
    const isMedia = /^image\/(png|jpeg|gif|webp)$|^application\/pdf$/.test(mediaType);
    if (read.has(fileId) || !(isText || isMedia) || bytes + file.bytes > maxPromptFileBytes) continue;
    try {
      const content = await turn.fileContent(fileId);
      bytes += content.byteLength;
      const data = mediaType === 'application/pdf' ? withoutLead(content) : content;
      const text = () => `${nameOf(file)}\n${decoderOf(mediaType).decode(data)}`;
      read.set(fileId, isText ? { type: 'text', text: text() } : { type: 'media', mediaType, filename, data });
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
      read.set(fileId, { type: 'text', text: `${nameOf(file)} This file was deleted.` });
    }
  }
  return read;
}

/** A PDF from its first line on. Not every provider looks for it behind what a scanner or printer has put before it. */
function withoutLead(pdf: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const start = new TextDecoder('latin1').decode(pdf.subarray(0, 1024));
  return pdf.subarray(Math.max(0, start.search(/%PDF-\d/)));
}

/** A text that is not UTF-8 has its charset in its type. */
function decoderOf(mediaType: string): TextDecoder {
  return new TextDecoder(/; charset=([^;\s]+)/.exec(mediaType)?.[1] ?? 'utf-8');
}

function nameOf({ fileId, filename = fileId, mediaType, bytes }: FilePart): string {
  return `[file ${filename}: ${mediaType}, ${bytes} bytes]`;
}

/** The bytes as a URL, which every framework accepts. */
export function dataUrl({ mediaType, data }: MediaPart): string {
  let binary = '';
  // In pieces: a function has a limit of arguments.
  for (let at = 0; at < data.length; at += 8_192) binary += String.fromCharCode(...data.subarray(at, at + 8_192));
  return `data:${mediaType};base64,${btoa(binary)}`;
}

function modelResult({ input, output = null, error, outcomeUnknown }: ToolResultPart): ModelResult {
  const isError = error !== undefined || outcomeUnknown === true;
  const outcome =
    error !== undefined
      ? `Error: ${error}`
      : outcomeUnknown
        ? 'Error: the outcome of this call is unknown.'
        : typeof output === 'string'
          ? output
          : JSON.stringify(output);
  if (input === undefined) return { text: outcome, isError, output: isError ? undefined : output };
  // With the model's own input alone, it would report a call that did not happen.
  const text = `The approver changed the input of this call to ${JSON.stringify(input)}. Its result: ${outcome}`;
  return { text, isError, output: undefined };
}

/**
 * Calls a tool for a model. A call that the service refuses to accept, such as one with too long an input, is an error for the
 * model too.
 *
 * @throws TurnLostError
 */
export async function callForModel(turn: Turn, tool: string, input: unknown): Promise<ModelResult> {
  try {
    return modelResult(await turn.toolResult(tool, input));
  } catch (error) {
    if (error instanceof SignalboxError && [400, 413].includes(error.status)) {
      return { text: `Error: The call was not accepted: ${error.detail}`, isError: true, output: undefined };
    }
    throw error;
  }
}

/** The agent's instructions and what its output schema asks for. The service checks the response against the schema. */
export function instructionsOf({ instructions, outputSchema }: Turn): string {
  const format =
    outputSchema === null
      ? ''
      : `Your final answer is one JSON value that matches this JSON Schema, and nothing else:\n${JSON.stringify(outputSchema)}`;
  return [instructions, format].filter((text) => text !== '').join('\n\n');
}

/** What `approval` and `effectful` say about a tool that the program runs. */
export type ToolPolicies = Readonly<Record<string, Pick<ClientTool, 'approval' | 'effectful'>>>;

export function definitionOf(
  name: string,
  description: string | undefined,
  inputSchema: object,
  policies: ToolPolicies,
): ClientTool {
  const { $schema: _, ...schema } = inputSchema as Record<string, unknown>;
  return {
    type: 'client',
    name,
    description: description ?? '',
    inputSchema: { type: 'object', properties: {}, ...schema },
    ...(Object.hasOwn(policies, name) ? policies[name] : {}),
  };
}

/** A misspelt name would leave a tool without its approval. */
export function checkPolicies(names: readonly string[], policies: ToolPolicies): void {
  const wrong = Object.keys(policies).find((name) => !names.includes(name));
  if (wrong !== undefined) throw new TypeError(`There is no tool "${wrong}"`);
}

/** Every finish reason of the frameworks and their providers that is not `endTurn`. */
const stopReasons: Readonly<Record<string, TurnResult['stopReason']>> = {
  length: 'maxOutputTokens',
  max_tokens: 'maxOutputTokens',
  max_output_tokens: 'maxOutputTokens',
  'content-filter': 'refusal',
  content_filter: 'refusal',
  refusal: 'refusal',
  safety: 'refusal',
};

export function resultOfFinish(reason: unknown): TurnResult {
  const name = String(reason).toLowerCase();
  return { stopReason: Object.hasOwn(stopReasons, name) ? stopReasons[name] : 'endTurn' };
}

/**
 * Ends a run at a response that is not complete, before any of its calls is made. Frameworks repair the JSON of half an input, and
 * would make the call with it.
 */
export interface ResponseGuard {
  /** For the framework: also aborts when the run ends here. */
  readonly signal: AbortSignal;
  /** Called at the end of each response. `isCut`: its stream ended without a finish reason. */
  finished(reason: unknown, isCut: boolean): void;
  /** Called before each call. Throws if none may be made. */
  check(): void;
  /** Whether the run was ended here, whatever the framework made of it. */
  readonly hasEndedRun: boolean;
  /** How the run ended. Throws if the last response was cut. */
  result(): TurnResult;
}

export function createResponseGuard(signal: AbortSignal): ResponseGuard {
  const end = new AbortController();
  let isCut = false;
  let last: TurnResult = {};
  return {
    signal: AbortSignal.any([signal, end.signal]),
    get hasEndedRun() {
      return end.signal.aborted;
    },
    finished(reason, wasCut) {
      isCut = wasCut;
      last = resultOfFinish(reason);
    },
    check() {
      if (!isCut && last.stopReason === 'endTurn') return;
      end.abort(new Error('The response of the model is not complete'));
      throw end.signal.reason;
    },
    result() {
      if (isCut) throw interrupted();
      return last;
    },
  };
}

function interrupted(cause?: unknown): TurnFailedError {
  return new TurnFailedError('model_unavailable', "The model's stream was interrupted", { cause });
}

/**
 * The error with which a turn ends. A failed request to a provider gets the code that it has for agents of the service, and a
 * message without the provider's own, which can quote the prompt.
 */
export function failureOf(thrown: unknown): unknown {
  for (let at = thrown, depth = 0; at instanceof Error && depth < 8; at = innerOf(at), depth += 1) {
    if (at instanceof TurnFailedError || at instanceof TurnLostError) return at;
    if (at instanceof SignalboxError) return thrown;
    const { status, statusCode = status } = at as { status?: unknown; statusCode?: unknown };
    if (typeof statusCode === 'number' && statusCode >= 300) {
      const message = `The model's provider responded with HTTP ${statusCode}`;
      return new TurnFailedError(codeOfStatus(statusCode), message, { cause: thrown });
    }
    // How providers of the AI SDK report a stream that ended too soon.
    if (at.name === 'AI_InvalidResponseDataError' && (at as { data?: unknown }).data === undefined) {
      return interrupted(thrown);
    }
    if (isConnectionError(at)) {
      return new TurnFailedError('model_unavailable', "The model's provider could not be reached", { cause: thrown });
    }
  }
  return thrown;
}

function innerOf(error: Error): unknown {
  const { lastError, cause } = error as { lastError?: unknown; cause?: unknown };
  return lastError ?? cause;
}

function codeOfStatus(status: number): string {
  if (status === 401) return 'model_key_rejected';
  if (status === 408) return 'model_timeout';
  if (status === 429) return 'model_rate_limited';
  return status >= 500 ? 'model_unavailable' : 'model_rejected';
}

function isConnectionError(error: Error): boolean {
  const { code } = error as { code?: unknown };
  return (
    error.name === 'APIConnectionError' ||
    error.constructor.name === 'APIConnectionError' ||
    (typeof code === 'string' && /^(ECONN|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EPIPE|UND_ERR_)/.test(code))
  );
}

/** Usage with what a framework may not know. */
export function reportUsage(
  turn: Turn,
  used: Partial<Record<'input' | 'output' | 'cached' | 'cacheWrite', number | undefined>>,
): void {
  turn.usage({
    inputTokens: used.input ?? 0,
    outputTokens: used.output ?? 0,
    cachedTokens: used.cached ?? 0,
    cacheWriteTokens: used.cacheWrite ?? 0,
  });
}
