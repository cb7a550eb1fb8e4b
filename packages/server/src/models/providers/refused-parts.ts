// What of a request its provider refuses: a file, a message or a tool. The failure names it, and says how a retry leaves it out.
import type { FilePart, RetryWithout } from '@signalbox/contract';
import { formatId } from '../../lib/ids.ts';
import { parseJson } from '../../lib/json/json.ts';
import { elementsAt, suspectFiles } from '../failure/refused-file.ts';
import { type ModelCall, ModelFailure } from '../model/model.ts';
import type { ProviderError } from '../model/provider-error.ts';
import { messagesIn } from '../prompt/message-marks.ts';
import type { PromptFiles } from '../prompt/prompt-files.ts';
import { type SentTools, toolNamed } from '../tools/tools.ts';
import type { Provider } from './provider.ts';
import { unsentRequest } from './request.ts';

interface Asked {
  readonly provider: Provider;
  readonly call: ModelCall;
  readonly baseUrl: URL;
  /** Undefined if the request was not made. */
  readonly files: PromptFiles | undefined;
  readonly tools: SentTools;
}

/** `error`: what the provider said. The failure is the same if it is not about the request, or names no part of it. */
export async function namingRefused(
  failure: ModelFailure,
  error: ProviderError | undefined,
  { provider, call, baseUrl, files, tools }: Asked,
): Promise<ModelFailure> {
  if (failure.code !== 'model_rejected' || !failure.isOfRequest || !error || !files) return failure;
  const why = provider.explain?.(error, call.config, baseUrl);
  // It is about the agent, so that another model may accept the same request.
  if (why !== undefined)
    return new ModelFailure(failure.code, `${failure.message}: ${why}`, { ...failure, isOfRequest: false });
  const tool = failure.param === undefined ? undefined : toolNamed(failure.param, tools);
  if (tool !== undefined) return named(failure, `the tool "${tool}"`, { tools: [tool] });
  const isPlaced = error.ownParams.some((param) => /\d/.test(param));
  if (!isPlaced && files.media.size === 0) return failure;
  const made = await unsentRequest(provider, call, files, { isMarked: true });
  const body = typeof made?.init.body === 'string' ? made.init.body : undefined;
  if (body === undefined) return failure;
  const suspects = suspectFiles(error, body, files.fileOf);
  if (suspects.length > 0) {
    const fileIds = suspects.map(({ fileId }) => fileId);
    return named(
      failure,
      listed('file', suspects.map(nameOf)),
      { fileIds },
      suspects.length === 1 ? suspects[0] : undefined,
    );
  }
  const messageIds = refusedMessages(error, body).map((id) => formatId('msg', id));
  if (messageIds.length === 0) return failure;
  return named(failure, listed('message', messageIds), { messageIds });
}

/** The most that a retry can name. */
const MAX_MESSAGES = 100;

/** IDs of the messages at the first place that the error names and that has a message. */
function refusedMessages({ ownParams }: ProviderError, body: string): string[] {
  const request = parseJson(body);
  const elements = ownParams.flatMap((param) => elementsAt(request, param));
  const ids = elements.map(messagesIn).find((some) => some.length > 0) ?? [];
  return ids.slice(0, MAX_MESSAGES);
}

function nameOf({ fileId, filename }: FilePart): string {
  return filename === undefined ? fileId : `${JSON.stringify(filename)} (${fileId})`;
}

const MAX_NAMED = 5;

function listed(what: string, names: readonly string[]): string {
  if (names.length === 1) return `the ${what} ${names[0]}`;
  const shown = names.slice(0, MAX_NAMED);
  if (names.length > MAX_NAMED) shown.push(`${names.length - MAX_NAMED} more`);
  return `one of the ${what}s ${shown.join(', ')}`;
}

function named(
  failure: ModelFailure,
  what: string,
  retryWithout: RetryWithout,
  refusedFile?: FilePart | undefined,
): ModelFailure {
  const message = `${failure.message}: it is about ${what}; the turn can be retried without it`;
  return new ModelFailure(failure.code, message, { ...failure, refusedFile, retryWithout });
}
