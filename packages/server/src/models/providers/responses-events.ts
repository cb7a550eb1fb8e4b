// The events of OpenAI's Responses, of OpenAI itself and of gateways with the same API.

import { parseJson } from '../../lib/json/json.ts';
import { createRanCollector, type RanCollector, sourceOf, withoutSealed } from '../response/ran.ts';
import type { EventReader } from '../response/response-events.ts';
import { argumentsIn, listIn, numberIn, recordIn, textIn } from './lenient.ts';

type Fields = Record<string, unknown>;

export function createResponsesReader(): EventReader {
  let isOver = false;
  const ran = createRanCollector();
  let webSearches = 0;
  return {
    event(value) {
      collect(ran, recordIn(value));
      if (isSearch(recordIn(value))) webSearches += 1;
      const events = toEvents(value);
      isOver ||= /^response\.(completed|incomplete)$/.test(String(recordIn(value).type));
      return events;
    },
    isOver: () => isOver,
    ran: ran.ran,
    webSearches: () => webSearches,
    whole,
  };
}

/** Calls that the caller is to run; this service requests functions only. */
const FOR_CALLER = /^(function|custom_tool|computer|local_shell|shell|apply_patch)_call$/;

/** Items of the tools that the provider runs itself end in `_call`; what a text cites is in its annotations. */
function collect(ran: RanCollector, given: Fields): void {
  if (given.type === 'response.output_text.annotation.added') cite(ran, recordIn(given.annotation));
  if (given.type !== 'response.output_item.done') return;
  const item = recordIn(given.item);
  const [type, index] = [String(item.type), numberIn(given.output_index) ?? 0];
  // Some gateways send no events of annotations.
  if (type === 'message')
    for (const part of listIn(item.content))
      for (const one of listIn(recordIn(part).annotations)) cite(ran, recordIn(one));
  if (!type.endsWith('_call') || FOR_CALLER.test(type)) return;
  const { type: _, id, status, action, arguments: given_arguments, code, queries, name, error, ...more } = item;
  const { sources, ...did } = recordIn(action);
  const tool = type === 'mcp_call' ? (textIn(name) ?? type) : type.slice(0, -'_call'.length);
  const input =
    action !== undefined && action !== null
      ? did
      : given_arguments !== undefined
        ? (parseJson(argumentsIn(given_arguments) ?? '') ?? given_arguments)
        : { ...(code !== undefined && { code }), ...(queries !== undefined && { queries }) };
  const callId = textIn(id) ?? `item_${index}`;
  ran.begin(callId, tool, input);
  const hasFailed = (typeof status === 'string' && status !== 'completed') || (error !== undefined && error !== null);
  const why =
    textIn(error) ?? textIn(recordIn(error).message) ?? `The provider’s call is ${textIn(status) ?? 'failed'}.`;
  const output = withoutSealed({ ...(sources !== undefined && sources !== null && { sources }), ...more });
  ran.end(callId, tool, hasFailed ? { error: why } : { output });
  for (const one of listIn(sources)) {
    const url = textIn(recordIn(one).url);
    if (url !== null) ran.reads(sourceOf(url));
  }
}

/** Whether a search has ended. Pages that it opens, or finds words in, are actions of the same tool, and not charged for. */
function isSearch({ type, item }: Fields): boolean {
  const { type: kind, status, action } = recordIn(item);
  if (type !== 'response.output_item.done' || kind !== 'web_search_call' || status === 'failed') return false;
  return (textIn(recordIn(action).type) ?? 'search') === 'search';
}

function cite(ran: RanCollector, { url, title, filename, file_id }: Fields): void {
  ran.cites(sourceOf(textIn(url), textIn(title) ?? textIn(filename) ?? textIn(file_id)));
}

function toEvents(value: unknown): readonly unknown[] {
  const given = recordIn(value);
  const { type } = given;
  const at = {
    type,
    item_id: textIn(given.item_id) ?? '',
    output_index: numberIn(given.output_index) ?? 0,
    summary_index: numberIn(given.summary_index) ?? 0,
  };
  switch (type) {
    case 'response.created': {
      const { id, created_at, model } = recordIn(given.response);
      const named = { id: textIn(id) ?? '', created_at: numberIn(created_at) ?? 0, model: textIn(model) ?? '' };
      return [{ type, response: named }];
    }
    case 'response.output_item.added':
    case 'response.output_item.done': {
      const item = toItem(recordIn(given.item), at.output_index);
      return item === undefined ? [] : [{ ...at, item }];
    }
    case 'response.output_text.delta':
    case 'response.refusal.delta':
    case 'response.reasoning_summary_text.delta':
    case 'response.function_call_arguments.delta': {
      const delta = argumentsIn(given.delta) ?? textIn(given.delta);
      return delta === null ? [] : [{ ...at, delta }];
    }
    case 'response.function_call_arguments.done':
      return [{ ...at, arguments: argumentsIn(given.arguments) ?? '' }];
    case 'response.reasoning_summary_part.added':
    case 'response.reasoning_summary_part.done':
      return [at];
    case 'response.completed':
    case 'response.incomplete':
      return [{ type, response: toEnd(recordIn(given.response)) }];
    default:
      // What is no event at all is for the package to report.
      return typeof type === 'string' ? [] : [value];
  }
}

/** Undefined: of a kind that is not known, or that no request asks for. */
function toItem(item: Fields, index: number): Fields | undefined {
  const { type } = item;
  const id = textIn(item.id) ?? `item_${index}`;
  switch (type) {
    case 'message': {
      const { phase } = item;
      return { type, id, ...((phase === 'commentary' || phase === 'final_answer') && { phase }) };
    }
    case 'reasoning':
      return { type, id, encrypted_content: textIn(item.encrypted_content) };
    case 'function_call': {
      const name = textIn(item.name);
      const status = item.status === 'incomplete' || item.status === 'in_progress' ? item.status : 'completed';
      const call_id = textIn(item.call_id) ?? id;
      return name === null
        ? undefined
        : { type, id, call_id, name, arguments: argumentsIn(item.arguments) ?? '', status };
    }
    case 'web_search_call':
      return { type, id, status: textIn(item.status) ?? 'completed', action: toSearch(recordIn(item.action)) };
    default:
      return undefined;
  }
}

/** What a search did; null if it is of a kind that is not known. */
function toSearch({ type, query, queries, sources, url, pattern }: Fields): Fields | null {
  switch (type) {
    case 'search': {
      const named = listIn(sources).flatMap((one) => {
        const address = textIn(recordIn(one).url);
        return address === null ? [] : [{ type: 'url', url: address }];
      });
      const texts = listIn(queries).flatMap((one) => textIn(one) ?? []);
      return {
        type,
        query: textIn(query),
        ...(texts.length > 0 && { queries: texts }),
        ...(named.length > 0 && { sources: named }),
      };
    }
    case 'open_page':
      return { type, url: textIn(url) };
    case 'find_in_page':
      return { type, url: textIn(url), pattern: textIn(pattern) };
    default:
      return null;
  }
}

function toEnd({ incomplete_details, usage, service_tier }: Fields): Fields {
  const reason = textIn(recordIn(incomplete_details).reason);
  const counts = recordIn(usage);
  const [input, output] = [recordIn(counts.input_tokens_details), recordIn(counts.output_tokens_details)];
  return {
    incomplete_details: reason === null ? null : { reason },
    service_tier: textIn(service_tier),
    usage:
      Object.keys(counts).length === 0
        ? null
        : {
            input_tokens: numberIn(counts.input_tokens) ?? 0,
            input_tokens_details: {
              cached_tokens: numberIn(input.cached_tokens),
              cache_write_tokens: numberIn(input.cache_write_tokens),
            },
            output_tokens: numberIn(counts.output_tokens) ?? 0,
            output_tokens_details: { reasoning_tokens: numberIn(output.reasoning_tokens) },
          },
  };
}

function whole(body: unknown): readonly unknown[] | undefined {
  const response = recordIn(body);
  if (!Array.isArray(response.output)) return undefined;
  const type = response.status === 'incomplete' ? 'response.incomplete' : 'response.completed';
  const items = response.output.map((item: unknown) => recordIn(item));
  return [
    { type: 'response.created', response },
    ...items.flatMap((item, output_index) => [
      {
        type: 'response.output_item.added',
        output_index,
        item: item.type === 'function_call' ? { ...item, arguments: '' } : item,
      },
      ...textsOf(item).map((more) => ({ item_id: item.id, output_index, ...more })),
      { type: 'response.output_item.done', output_index, item },
    ]),
    { type, response },
  ];
}

/** What the deltas of an item would have said. */
function textsOf({ type, content, summary, arguments: input }: Fields): readonly Fields[] {
  switch (type) {
    case 'message':
      return listIn(content).map((part) => {
        const { text, refusal } = recordIn(part);
        return refusal === undefined
          ? { type: 'response.output_text.delta', delta: text }
          : { type: 'response.refusal.delta', delta: refusal };
      });
    case 'reasoning':
      return listIn(summary).flatMap((part, summary_index) => [
        { type: 'response.reasoning_summary_part.added', summary_index },
        { type: 'response.reasoning_summary_text.delta', summary_index, delta: recordIn(part).text },
        { type: 'response.reasoning_summary_part.done', summary_index },
      ]);
    case 'function_call':
      return [{ type: 'response.function_call_arguments.delta', delta: argumentsIn(input) ?? '' }];
    default:
      return [];
  }
}
