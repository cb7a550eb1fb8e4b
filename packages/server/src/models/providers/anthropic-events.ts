// The events of Anthropic's Messages. Anthropic may add kinds of events, blocks, deltas and citations, and asks clients to pass over
// what they don't know; servers that use its format leave out what is not needed.

import type { EventReader } from '../response/response-events.ts';
import { argumentsIn, numberIn, recordIn, textIn } from './lenient.ts';

type Fields = Record<string, unknown>;
type BlockType = 'text' | 'thinking' | 'redacted_thinking' | 'tool_use';

/** The kind of block that a delta belongs to. */
const DELTAS: Readonly<Record<string, BlockType>> = {
  text_delta: 'text',
  thinking_delta: 'thinking',
  signature_delta: 'thinking',
  input_json_delta: 'tool_use',
};

export function createAnthropicReader(): EventReader {
  /** The blocks that have begun. `input`: what a call began with; it counts if no delta brings any. */
  const blocks = new Map<number, { type: BlockType; input?: string }>();
  /** Blocks of an unknown kind. */
  const passedOver = new Set<number>();
  let outputTokens = 0;
  let hasReason = false;
  let hasStopped = false;

  function begin(index: number, given: Fields): readonly unknown[] {
    const block = toBlock(given);
    if (block === undefined) {
      passedOver.add(index);
      return [];
    }
    passedOver.delete(index);
    const isGiven = Object.keys(recordIn(given.input)).length > 0;
    blocks.set(index, { type: block.type, ...(isGiven && { input: JSON.stringify(given.input) }) });
    const start = { type: 'content_block_start', index, content_block: block };
    // Text that arrives with the beginning of its block.
    const [text, thinking] = [textIn(given.text), textIn(given.thinking)];
    if (block.type === 'text' && text) return [start, delta(index, { type: 'text_delta', text })];
    if (block.type === 'thinking' && thinking) return [start, delta(index, { type: 'thinking_delta', thinking })];
    return [start];
  }

  function add(index: number, given: Fields): readonly unknown[] {
    const type = DELTAS[String(given.type)];
    const made = toDelta(given);
    if (type === undefined || made === undefined || passedOver.has(index)) return [];
    // Calls have a name, which only the beginning of their block has.
    const isMissing = !blocks.has(index) && (type === 'text' || type === 'thinking');
    const begun = isMissing ? begin(index, { type }) : [];
    if (made.partial_json) delete blocks.get(index)?.input;
    return [...begun, delta(index, made)];
  }

  function end(index: number): readonly unknown[] {
    const block = blocks.get(index);
    if (!block) return [];
    blocks.delete(index);
    const input =
      block.input === undefined ? [] : [delta(index, { type: 'input_json_delta', partial_json: block.input })];
    return [...input, { type: 'content_block_stop', index }];
  }

  function event(value: unknown): readonly unknown[] {
    const given = recordIn(value);
    const index = numberIn(given.index) ?? 0;
    switch (given.type) {
      case 'message_start':
        return [{ type: 'message_start', message: toMessage(recordIn(given.message)) }];
      case 'content_block_start':
        return begin(index, recordIn(given.content_block));
      case 'content_block_delta':
        return add(index, recordIn(given.delta));
      case 'content_block_stop':
        return end(index);
      case 'message_delta': {
        const { stop_reason, stop_sequence } = recordIn(given.delta);
        hasReason ||= typeof stop_reason === 'string';
        const reason = { stop_reason: textIn(stop_reason), stop_sequence: textIn(stop_sequence) };
        const usage = recordIn(given.usage);
        outputTokens = numberIn(usage.output_tokens) ?? outputTokens;
        return [
          { type: 'message_delta', delta: reason, usage: { ...toUsage(usage, null), output_tokens: outputTokens } },
        ];
      }
      case 'message_stop':
        hasStopped = true;
        return [{ type: 'message_stop' }];
      case 'ping':
        return [];
      default:
        // What is no event at all is for the package to report.
        return typeof given.type === 'string' ? [] : [value];
    }
  }

  return {
    event,
    // A response that says why it ended is whole.
    end: () => (hasReason && !hasStopped ? [{ type: 'message_stop' }] : []),
    whole(body) {
      const message = recordIn(body);
      if (!Array.isArray(message.content)) return undefined;
      const { stop_reason, stop_sequence, usage } = message;
      return [
        { type: 'message_start', message },
        ...message.content.flatMap((block, index) => wholeBlock(recordIn(block), index)),
        { type: 'message_delta', delta: { stop_reason, stop_sequence }, usage },
        { type: 'message_stop' },
      ];
    },
  };
}

function delta(index: number, made: Fields): Fields {
  return { type: 'content_block_delta', index, delta: made };
}

/** Its text or its input is in its beginning; a signature is only a delta. */
function wholeBlock(block: Fields, index: number): readonly Fields[] {
  const { signature } = block;
  return [
    { type: 'content_block_start', index, content_block: block },
    ...(typeof signature === 'string' ? [delta(index, { type: 'signature_delta', signature })] : []),
    { type: 'content_block_stop', index },
  ];
}

function toMessage({ id, model, usage }: Fields): Fields {
  return { id: textIn(id), model: textIn(model), role: 'assistant', content: [], usage: toUsage(recordIn(usage), 0) };
}

/** `none`: the count of input tokens if there is none. */
function toUsage(usage: Fields, none: number | null): Fields {
  return {
    service_tier: textIn(usage.service_tier),
    input_tokens: numberIn(usage.input_tokens) ?? none,
    cache_creation_input_tokens: numberIn(usage.cache_creation_input_tokens),
    cache_read_input_tokens: numberIn(usage.cache_read_input_tokens),
  };
}

function toBlock(given: Fields): (Fields & { type: BlockType }) | undefined {
  switch (given.type) {
    case 'text':
      return { type: 'text', text: '' };
    case 'thinking':
      return { type: 'thinking', thinking: '' };
    case 'redacted_thinking': {
      const { data } = given;
      return typeof data === 'string' ? { type: 'redacted_thinking', data } : undefined;
    }
    case 'tool_use': {
      const name = textIn(given.name);
      return name === null ? undefined : { type: 'tool_use', id: textIn(given.id) ?? name, name, input: {} };
    }
    default:
      return undefined;
  }
}

function toDelta({ type, text, thinking, signature, partial_json }: Fields): Fields | undefined {
  const [made, name] = {
    text_delta: [textIn(text), 'text'],
    thinking_delta: [textIn(thinking), 'thinking'],
    signature_delta: [textIn(signature), 'signature'],
    input_json_delta: [argumentsIn(partial_json), 'partial_json'],
  }[String(type)] ?? [null, ''];
  return made === null || name === null ? undefined : { type, [name!]: made };
}
