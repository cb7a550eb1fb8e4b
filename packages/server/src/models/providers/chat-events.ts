// The chunks of chat completions, as many servers send them, in the form of OpenAI's.

import { parseJson } from '../../lib/json/json.ts';
import { createRanCollector, type RanCollector, sourceOf } from '../response/ran.ts';
import type { EventReader } from '../response/response-events.ts';
import { argumentsIn, joinedText, listIn, numberIn, recordIn, textIn } from './lenient.ts';

type Fields = Record<string, unknown>;

export function createChatReader(): EventReader {
  let hasBegun = false;
  let hasCalls = false;
  let hasEnded = false;
  const ran = createRanCollector();
  let webSearches = 0;

  function event(value: unknown): readonly unknown[] {
    const { choices } = recordIn(value);
    // What is no chunk at all is for the package to report.
    if (choices !== undefined && typeof choices !== 'object') return [value];
    collect(ran, recordIn(value));
    webSearches = searchesIn(recordIn(recordIn(value).usage)) ?? webSearches;
    const chunk = toChunk(recordIn(value));
    const [choice] = chunk.choices;
    hasBegun ||= isSaid(choice?.delta);
    hasCalls ||= choice?.delta?.tool_calls !== undefined;
    hasEnded ||= choice !== undefined && choice.finish_reason !== null;
    return [chunk];
  }

  return {
    event,
    ran: ran.ran,
    webSearches: () => webSearches,
    // `[DONE]` after a text says that it is whole.
    end: (isDone) =>
      isDone && hasBegun && !hasEnded
        ? [{ choices: [{ delta: {}, finish_reason: hasCalls ? 'tool_calls' : 'stop' }] }]
        : [],
    whole(body) {
      const { choices } = recordIn(body);
      if (!Array.isArray(choices) || choices.length === 0) return undefined;
      return [body];
    },
  };
}

/**
 * What servers add to the format for searches of their own: `annotations` (OpenAI, OpenRouter), `citations` and `search_results`
 * (Perplexity, xAI), `executed_tools` (Groq).
 */
function collect(ran: RanCollector, { choices, citations, search_results }: Fields): void {
  const choice = recordIn(listIn(choices)[0]);
  const said = Object.keys(recordIn(choice.delta)).length > 0 ? recordIn(choice.delta) : recordIn(choice.message);
  for (const annotation of listIn(said.annotations)) {
    const given = recordIn(annotation);
    const { url, title, content } = { ...given, ...recordIn(given.url_citation) } as Fields;
    if (textIn(url) !== null) ran.cites(sourceOf(textIn(url), textIn(title), textIn(content)));
  }
  // These have titles, so they come first.
  for (const found of [...listIn(search_results), ...listIn(citations)]) {
    const { url, title } = recordIn(typeof found === 'string' ? { url: found } : found);
    if (textIn(url) !== null) ran.reads(sourceOf(textIn(url), textIn(title)));
  }
  for (const [at, one] of listIn(said.executed_tools).entries()) {
    const { type, name, index, arguments: input, output, ...more } = recordIn(one);
    const id = `executed_${numberIn(index) ?? at}`;
    const tool = textIn(name) ?? textIn(type) ?? 'tool';
    ran.begin(id, tool, {});
    const text = argumentsIn(input);
    if (text !== null) ran.input(id, parseJson(text) ?? text);
    if (output !== undefined && output !== null)
      ran.end(id, tool, { output: Object.keys(more).length > 0 ? { output, ...more } : output });
  }
}

function isSaid(delta: Fields | undefined): boolean {
  return ['content', 'refusal', 'tool_calls'].some(
    (name) => delta?.[name] !== undefined && delta[name] !== '' && delta[name] !== null,
  );
}

interface Chunk extends Fields {
  choices: { delta: Fields | undefined; finish_reason: string | null }[];
}

/** An error is found before: here its fields are empty. */
function toChunk({ id, created, model, choices, usage, error: _, ...more }: Fields): Chunk {
  const given = listIn(choices).map(recordIn);
  const counts = [usage, given[0]?.usage, recordIn(more.x_groq).usage].find((one) => Object.keys(recordIn(one)).length);
  return {
    ...more,
    id: textIn(id),
    created: numberIn(created),
    model: textIn(model),
    choices: given.slice(0, 1).map(toChoice),
    usage: counts === undefined ? null : toUsage(recordIn(counts)),
  };
}

function toChoice({ delta, message, finish_reason }: Fields): Chunk['choices'][number] {
  // A whole response, which some servers also send as their only chunk.
  const said = Object.keys(recordIn(delta)).length > 0 ? delta : (message ?? delta);
  const reason = textIn(finish_reason);
  return {
    delta: said === undefined || said === null ? undefined : toDelta(recordIn(said)),
    finish_reason: reason === '' ? null : reason,
  };
}

/** What is not known stays: reasoning has many names. */
function toDelta({ role: _, content, tool_calls, function_call, ...more }: Fields): Fields {
  const listed = listIn(tool_calls);
  // The form before there were several calls.
  const calls = listed.length > 0 || !function_call ? listed : [{ index: 0, function: function_call }];
  const made = calls
    .map((call, position) => toCall(recordIn(call), position, calls.length))
    .filter((call) => call !== undefined);
  return {
    ...more,
    content: toContent(content),
    ...('reasoning_content' in more && { reasoning_content: joinedText(more.reasoning_content) }),
    ...('reasoning' in more && { reasoning: joinedText(more.reasoning) }),
    ...(made.length > 0 && { tool_calls: made }),
  };
}

/** The package reads parts with thoughts, as Mistral sends them. */
function toContent(content: unknown): unknown {
  if (!Array.isArray(content)) return typeof content === 'number' ? String(content) : joinedText(content);
  return content.flatMap((part) => {
    if (typeof part === 'string') return [{ type: 'text', text: part }];
    const { type, text } = recordIn(part);
    if (typeof type === 'string') return [part];
    return typeof text === 'string' ? [{ type: 'text', text }] : [];
  });
}

/** Undefined: it says nothing. */
function toCall(call: Fields, position: number, count: number): Fields | undefined {
  const given = recordIn(call.function ?? call);
  const [name, text, id] = [textIn(given.name), argumentsIn(given.arguments), textIn(call.id)];
  // Some servers number no calls.
  const index = numberIn(call.index) ?? (count > 1 ? position : null);
  const isEmpty = typeof call.function !== 'object' || call.function === null;
  if (isEmpty && name === null && (id === null || index === null)) return undefined;
  const { extra_content } = call;
  return {
    ...call,
    index,
    id,
    type: 'function',
    function: { name, arguments: text },
    extra_content: typeof extra_content === 'object' && !Array.isArray(extra_content) ? extra_content : undefined,
  };
}

/** Perplexity; gateways in front of Anthropic. */
function searchesIn({ num_search_queries, server_tool_use }: Fields): number | null {
  return numberIn(num_search_queries ?? recordIn(server_tool_use).web_search_requests);
}

function toUsage(usage: Fields): Fields {
  const input = recordIn(usage.prompt_tokens_details ?? usage.input_tokens_details);
  return {
    prompt_tokens: numberIn(usage.prompt_tokens ?? usage.input_tokens),
    completion_tokens: numberIn(usage.completion_tokens ?? usage.output_tokens),
    total_tokens: numberIn(usage.total_tokens),
    // Moonshot, DeepSeek.
    prompt_tokens_details: {
      cached_tokens: numberIn(input.cached_tokens ?? usage.cached_tokens ?? usage.prompt_cache_hit_tokens),
    },
    completion_tokens_details: {
      reasoning_tokens: numberIn(recordIn(usage.completion_tokens_details).reasoning_tokens),
    },
  };
}
