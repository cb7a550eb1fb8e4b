// The events of Anthropic's Messages. Anthropic may add kinds of events, blocks, deltas and citations, and asks clients to pass over
// what they don't know; servers that use its format leave out what is not needed.

import { parseJson } from '../../lib/json/json.ts';
import { createRanCollector, type RanCollector, sourceOf, withoutSealed } from '../response/ran.ts';
import type { EventReader } from '../response/response-events.ts';
import { argumentsIn, listIn, numberIn, recordIn, textIn } from './lenient.ts';

type Fields = Record<string, unknown>;
type BlockType = 'text' | 'thinking' | 'redacted_thinking' | 'tool_use' | 'server_tool_use' | 'web_search_tool_result';

/** The kind of block that a delta belongs to. */
const DELTAS: Readonly<Record<string, BlockType>> = {
  text_delta: 'text',
  thinking_delta: 'thinking',
  signature_delta: 'thinking',
  input_json_delta: 'tool_use',
  citations_delta: 'text',
};

export function createAnthropicReader(): EventReader {
  /** The blocks that have begun. `input`: what a call began with; it counts if no delta brings any. */
  const blocks = new Map<number, { type: BlockType; input?: string }>();
  /** Blocks of an unknown kind. */
  const passedOver = new Set<number>();
  const ran = createRanCollector();
  /** The calls that Anthropic runs itself and is writing. */
  const inputs = new Map<number, { id: string; json: string }>();
  let outputTokens = 0;
  let webSearches = 0;
  let hasReason = false;
  let hasStopped = false;

  function begin(index: number, given: Fields): readonly unknown[] {
    const called = beginOfCall(ran, given);
    if (called === undefined) inputs.delete(index);
    else inputs.set(index, { id: called, json: '' });
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
    const written = inputs.get(index);
    if (written) written.json += argumentsIn(given.partial_json) ?? '';
    const citation = recordIn(given.citation);
    if (typeof citation.type === 'string') ran.cites(cited(citation));
    const made = toDelta(given);
    if (type === undefined || made === undefined || passedOver.has(index)) return [];
    // Calls have a name, which only the beginning of their block has.
    const isMissing = !blocks.has(index) && (type === 'text' || type === 'thinking');
    const begun = isMissing ? begin(index, { type }) : [];
    if (made.partial_json) delete blocks.get(index)?.input;
    return [...begun, delta(index, made)];
  }

  function end(index: number): readonly unknown[] {
    const written = inputs.get(index);
    inputs.delete(index);
    if (written && written.json !== '') ran.input(written.id, parseJson(written.json) ?? written.json);
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
      case 'message_start': {
        const message = recordIn(given.message);
        webSearches = searchesIn(message.usage) ?? webSearches;
        return [{ type: 'message_start', message: toMessage(message) }];
      }
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
        // The sum so far.
        webSearches = searchesIn(usage) ?? webSearches;
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
    ran: ran.ran,
    webSearches: () => webSearches,
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

/** The id of a call that Anthropic runs itself. Undefined for its result, and for every other block. */
function beginOfCall(ran: RanCollector, given: Fields): string | undefined {
  const type = String(given.type);
  if (type === 'server_tool_use' || type === 'mcp_tool_use') {
    const name = textIn(given.name) ?? type;
    const id = textIn(given.id) ?? name;
    ran.begin(id, name, given.input ?? {});
    return id;
  }
  const [, tool] = /^(\w+)_tool_result$/.exec(type) ?? [];
  if (tool === undefined) return undefined;
  const { content } = given;
  const { type: kind, error_code } = recordIn(content);
  const isError = given.is_error === true || /_error$/.test(String(kind));
  const output = withoutSealed(content ?? null);
  ran.end(
    textIn(given.tool_use_id) ?? tool,
    tool,
    isError ? { error: textIn(error_code) ?? JSON.stringify(output) } : { output },
  );
  return undefined;
}

/** A document has a title and no address. */
function cited({ url, source, title, document_title, cited_text }: Fields) {
  return sourceOf(textIn(url) ?? textIn(source), textIn(title) ?? textIn(document_title), textIn(cited_text));
}

/** Its text or its input is in its beginning; a signature and citations are only deltas. */
function wholeBlock(block: Fields, index: number): readonly Fields[] {
  const { signature, citations } = block;
  return [
    { type: 'content_block_start', index, content_block: block },
    ...listIn(citations).map((citation) => delta(index, { type: 'citations_delta', citation })),
    ...(typeof signature === 'string' ? [delta(index, { type: 'signature_delta', signature })] : []),
    { type: 'content_block_stop', index },
  ];
}

function toMessage({ id, model, usage }: Fields): Fields {
  return { id: textIn(id), model: textIn(model), role: 'assistant', content: [], usage: toUsage(recordIn(usage), 0) };
}

function searchesIn(usage: unknown): number | null {
  return numberIn(recordIn(recordIn(usage).server_tool_use).web_search_requests);
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
    case 'server_tool_use':
      return given.name === 'web_search'
        ? { type: 'server_tool_use', id: textIn(given.id) ?? 'web_search', name: 'web_search', input: {} }
        : undefined;
    case 'web_search_tool_result':
      return toSearchResult(given);
    default:
      return undefined;
  }
}

/** Undefined if Anthropic would not accept it back. */
function toSearchResult({ tool_use_id, content }: Fields): (Fields & { type: BlockType }) | undefined {
  const type = 'web_search_tool_result';
  const id = textIn(tool_use_id);
  if (id === null) return undefined;
  if (!Array.isArray(content)) {
    const error_code = textIn(recordIn(content).error_code) ?? 'unavailable';
    return { type, tool_use_id: id, content: { type: 'web_search_tool_result_error', error_code } };
  }
  const results = content.map((one) => {
    const { url, title, encrypted_content, page_age } = recordIn(one);
    const [address, sealed] = [textIn(url), textIn(encrypted_content)];
    return address === null || sealed === null
      ? undefined
      : {
          type: 'web_search_result',
          url: address,
          title: textIn(title),
          encrypted_content: sealed,
          page_age: textIn(page_age),
        };
  });
  return results.includes(undefined) ? undefined : { type, tool_use_id: id, content: results };
}

function toDelta({ type, text, thinking, signature, partial_json, citation }: Fields): Fields | undefined {
  if (type === 'citations_delta') {
    const { url, title, cited_text, encrypted_index, type: kind } = recordIn(citation);
    const [address, words, sealed] = [textIn(url), textIn(cited_text), textIn(encrypted_index)];
    if (kind !== 'web_search_result_location' || address === null || words === null || sealed === null)
      return undefined;
    const made = { type: kind, url: address, title: textIn(title), cited_text: words, encrypted_index: sealed };
    return { type, citation: made };
  }
  const [made, name] = {
    text_delta: [textIn(text), 'text'],
    thinking_delta: [textIn(thinking), 'thinking'],
    signature_delta: [textIn(signature), 'signature'],
    input_json_delta: [argumentsIn(partial_json), 'partial_json'],
  }[String(type)] ?? [null, ''];
  return made === null || name === null ? undefined : { type, [name!]: made };
}
