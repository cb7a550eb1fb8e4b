// The parts of a response as a provider's package reads them, made what they mean: thoughts in the text, names of tools with what the
// model's own format puts around them, files that are not kept, and a response with nothing in it.
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { type ModelCall, ModelFailure, type ReportedUsage } from '../model/model.ts';
import { usageOf } from '../model/usage.ts';
import { calledTool } from '../response/called-tool.ts';
import { createThinkTags, type Piece } from '../response/think-tags.ts';
import type { Provider } from './provider.ts';

type Part = LanguageModelV4StreamPart;
type TextPart = Extract<Part, { type: 'text-start' | 'text-delta' | 'text-end' }>;

/** The model ended its response normally, and there is nothing in it. It was paid for. */
export class EmptyResponse extends ModelFailure {
  constructor(usage: ReportedUsage, isSecond = false) {
    const message = `The model responded with nothing${isSecond ? ', twice' : ''}`;
    super('model_protocol', message, { retryable: !isSecond, usage });
  }
}

/** `webSearches`: as many as the response says so far. */
export function createParts(
  { thinksInText, repeatsEmpty }: Pick<Provider, 'thinksInText' | 'repeatsEmpty'>,
  { tools, purpose }: Pick<ModelCall, 'purpose'> & { tools: readonly { name: string }[] },
  webSearches: () => number,
): TransformStream<Part, Part> {
  const names = new Set(tools.map(({ name }) => name));
  const thoughts = thinksInText ? createThoughts() : undefined;
  let isEmpty = true;
  let files = 0;
  return new TransformStream({
    transform(part, controller) {
      isEmpty &&= ['stream-start', 'response-metadata', 'finish'].includes(part.type);
      switch (part.type) {
        case 'text-start':
        case 'text-delta':
        case 'text-end':
          for (const one of thoughts?.read(part) ?? [part]) controller.enqueue(one);
          break;
        case 'tool-input-start':
        case 'tool-call':
          controller.enqueue({ ...part, toolName: calledTool(part.toolName, names) });
          break;
        case 'file': {
          files += 1;
          const kind = /^[a-z]{1,20}\/[\w.+-]{1,60}$/.test(part.mediaType) ? ` (${part.mediaType})` : '';
          const text = `\n[The model responded with a file${kind}, which is not kept.]\n`;
          for (const one of textParts(`file ${files}`, text)) controller.enqueue(one);
          break;
        }
        case 'finish':
          if (isEmpty && repeatsEmpty && purpose === undefined && part.finishReason.unified === 'stop') {
            throw new EmptyResponse(usageOf(part.usage, webSearches()));
          }
          controller.enqueue(part);
          break;
        default:
          controller.enqueue(part);
      }
    },
  });
}

function textParts(id: string, delta: string): Part[] {
  return [
    { type: 'text-start', id },
    { type: 'text-delta', id, delta },
    { type: 'text-end', id },
  ];
}

/** Thoughts at the beginning of the text become reasoning. */
function createThoughts() {
  const tags = createThinkTags();
  const id = 'thought';
  let isThinking = false;
  let start: TextPart | undefined;

  function* toParts(pieces: readonly Piece[], textId: string): Generator<Part> {
    for (const { type, text } of pieces) {
      if (type === 'reasoning') {
        if (!isThinking) yield { type: 'reasoning-start', id };
        isThinking = true;
        yield { type: 'reasoning-delta', id, delta: text };
      } else {
        if (isThinking) yield { type: 'reasoning-end', id };
        isThinking = false;
        if (start) yield start;
        start = undefined;
        yield { type: 'text-delta', id: textId, delta: text };
      }
    }
  }

  return {
    *read(part: TextPart): Generator<Part> {
      if (part.type === 'text-start') {
        start = part;
      } else if (part.type === 'text-delta') {
        yield* toParts(tags.push(part.delta), part.id);
      } else {
        yield* toParts(tags.end(), part.id);
        if (isThinking) yield { type: 'reasoning-end', id };
        isThinking = false;
        // A text of thoughts alone has not begun.
        if (start === undefined) yield part;
        start = undefined;
      }
    },
  };
}
