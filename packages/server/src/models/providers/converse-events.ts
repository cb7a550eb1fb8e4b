// The events of Bedrock's Converse: each has one field, which is its type.
import type { EventReader } from '../response/response-events.ts';
import { argumentsIn, numberIn, recordIn, textIn } from './lenient.ts';

type Fields = Record<string, unknown>;

export function createConverseReader(): EventReader {
  let hasUsage = false;

  function event(value: unknown): readonly unknown[] {
    const given = recordIn(value);
    const { contentBlockStart, contentBlockDelta, contentBlockStop, messageStop, metadata } = given;
    if (contentBlockStart !== undefined) return toStart(recordIn(contentBlockStart));
    if (contentBlockDelta !== undefined) return toDelta(recordIn(contentBlockDelta));
    if (contentBlockStop !== undefined) return [{ contentBlockStop: { contentBlockIndex: indexOf(contentBlockStop) } }];
    if (messageStop !== undefined) return [{ messageStop: { stopReason: reasonIn(recordIn(messageStop)) } }];
    if (metadata !== undefined) {
      hasUsage = true;
      return [{ metadata: { usage: toUsage(recordIn(recordIn(metadata).usage)) } }];
    }
    // The beginning of a message, and kinds that are not known. What is no event at all is for the package to report.
    const [content] = Object.values(given);
    return typeof content === 'object' ? [] : [value];
  }

  return {
    event,
    isOver: () => hasUsage,
    whole(body) {
      const { output, stopReason, usage } = recordIn(body);
      const { content } = recordIn(recordIn(output).message);
      if (!Array.isArray(content)) return undefined;
      return [
        ...content.flatMap((block, index) => wholeBlock(recordIn(block), index)),
        { messageStop: { stopReason } },
        { metadata: { usage } },
      ];
    },
  };
}

/** Only calls need a beginning. */
function toStart(given: Fields): readonly Fields[] {
  const { toolUse } = recordIn(given.start);
  const { toolUseId, name } = recordIn(toolUse);
  const contentBlockIndex = indexOf(given);
  const called = textIn(name);
  if (called === null) return [];
  const start = { toolUse: { toolUseId: textIn(toolUseId) ?? `call_${contentBlockIndex}`, name: called } };
  return [{ contentBlockStart: { contentBlockIndex, start } }];
}

function toDelta(given: Fields): readonly Fields[] {
  const { text, toolUse, reasoningContent } = recordIn(given.delta);
  const made = (delta: Fields) => [{ contentBlockDelta: { contentBlockIndex: indexOf(given), delta } }];
  const said = textIn(text);
  if (said !== null) return made({ text: said });
  const input = argumentsIn(recordIn(toolUse).input);
  if (input !== null) return made({ toolUse: { input } });
  // One of them in each delta.
  const thought = recordIn(reasoningContent);
  const name = ['text', 'signature', 'redactedContent', 'data'].find((one) => typeof thought[one] === 'string');
  return name === undefined ? [] : made({ reasoningContent: { [name]: thought[name] } });
}

function wholeBlock(block: Fields, contentBlockIndex: number): readonly Fields[] {
  const { toolUse, text, reasoningContent } = block;
  const delta = (made: Fields) => ({ contentBlockDelta: { contentBlockIndex, delta: made } });
  const stop = { contentBlockStop: { contentBlockIndex } };
  if (toolUse !== undefined) {
    return [{ contentBlockStart: { contentBlockIndex, start: { toolUse } } }, delta({ toolUse }), stop];
  }
  if (text !== undefined) return [delta({ text }), stop];
  const { reasoningText, redactedContent } = recordIn(reasoningContent);
  const { text: thought, signature } = recordIn(reasoningText);
  const given = [{ text: thought }, { signature }, { redactedContent }].filter((one) => Object.values(one)[0]);
  return given.length === 0 ? [] : [...given.map((one) => delta({ reasoningContent: one })), stop];
}

function indexOf(block: unknown): number {
  return numberIn(recordIn(block).contentBlockIndex) ?? 0;
}

function reasonIn({ stopReason }: Fields): string {
  const reason = textIn(stopReason) ?? 'end_turn';
  // The window is full: the text ends as at a limit of its length.
  return reason === 'model_context_window_exceeded' ? 'max_tokens' : reason;
}

function toUsage(usage: Fields): Fields {
  const count = (name: string) => numberIn(usage[name]) ?? 0;
  return {
    inputTokens: count('inputTokens'),
    outputTokens: count('outputTokens'),
    totalTokens: count('totalTokens'),
    cacheReadInputTokens: count('cacheReadInputTokens'),
    cacheWriteInputTokens: count('cacheWriteInputTokens'),
  };
}
