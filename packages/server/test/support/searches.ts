// Searches of the web as providers run and report them, and what their servers refuse of it in the next request.
import type { Model } from '@signalbox/contract';
import { type Reply, raw } from './provider-server.ts';

export const searching = ['anthropic', 'openai', 'azure', 'google', 'vertex'] as const satisfies Model['provider'][];
export type Searching = (typeof searching)[number];

type Fields = Record<string, unknown>;
const fieldsOf = (value: unknown) => (value ?? {}) as Fields;
const listOf = (value: unknown) => (Array.isArray(value) ? (value as Fields[]) : []);

/** Why the real server refuses a request, as far as it is about searches; undefined: it accepts it. `path`: of the request. */
export function searchRefusal(provider: Searching, body: Fields, path: string): string | undefined {
  return refusals[provider](body, path);
}

const refusals: Record<Searching, (body: Fields, path: string) => string | undefined> = {
  anthropic({ messages, tools }) {
    const hasTool = listOf(tools).some(({ name }) => name === 'web_search');
    for (const [at, { role, content }] of listOf(messages).entries()) {
      const called = new Set<unknown>();
      const ended = new Set<unknown>();
      for (const [index, one] of listOf(content).entries()) {
        const place = `messages.${at}.content.${index}`;
        const isSearch = one.type === 'server_tool_use' || one.type === 'web_search_tool_result';
        if (isSearch && !hasTool) return `${place}: web_search is not in tools`;
        if (isSearch && role !== 'assistant') return `${place}: not allowed here`;
        if (one.type === 'server_tool_use') called.add(one.id);
        if (one.type !== 'web_search_tool_result') continue;
        if (!called.has(one.tool_use_id)) return `${place}: unexpected \`tool_use_id\` found`;
        ended.add(one.tool_use_id);
        if (listOf(one.content).some(({ encrypted_content }) => typeof encrypted_content !== 'string'))
          return `${place}.encrypted_content: Field required`;
      }
      if (called.size !== ended.size) return `messages.${at}: \`web_search\` tool use without a result`;
    }
    return undefined;
  },
  openai({ input }) {
    const items = listOf(input);
    for (const [at, { type, id }] of items.entries()) {
      const before = items[at - 1]?.type;
      if (type === 'web_search_call' && before !== 'reasoning')
        return `Item '${id}' of type 'web_search_call' was provided without its required 'reasoning' item`;
      const after = items[at + 1];
      if (type === 'reasoning' && (after === undefined || after.role === 'user'))
        return `Item '${id}' of type 'reasoning' was provided without its required following item.`;
    }
    return undefined;
  },
  azure(body, path) {
    const { tools, include } = body;
    for (const [at, tool] of listOf(tools).entries()) {
      if (tool.type === 'function') continue;
      if (tool.type !== 'web_search') return `Invalid value: '${tool.type}'. (tools[${at}].type)`;
      const unknown = Object.keys(tool).find((name) => !AZURE_SEARCH.has(name));
      if (unknown) return `Unknown parameter: 'tools[${at}].${unknown}'.`;
      const filter = Object.keys(fieldsOf(tool.filters)).find((name) => name !== 'allowed_domains');
      if (filter) return `Unknown parameter: 'tools[${at}].filters.${filter}'.`;
    }
    // It knows the model of each deployment. This one does not reason.
    if (!String(body.model).startsWith('prod-chat')) return refusals.openai(body, path);
    const isSealed = listOf(include).includes('reasoning.encrypted_content' as never);
    return isSealed ? 'Encrypted content is not supported with this model.' : undefined;
  },
  google({ contents, tools }, path) {
    const kinds = listOf(tools).flatMap((tool) => Object.keys(tool));
    if (kinds.includes('googleSearch') && kinds.includes('functionDeclarations') && /gemini-2/.test(path))
      return 'Built-in tools ({google_search}) and Function Calling cannot be combined in the same request.';
    const parts = listOf(contents).flatMap(({ parts }) => listOf(parts));
    const ids = (name: string) => parts.flatMap((part) => (part[name] ? [(part[name] as Fields).id] : []));
    return String(ids('toolCall')) === String(ids('toolResponse')) ? undefined : 'toolCall and toolResponse must match';
  },
  vertex({ contents, tools, toolConfig, generationConfig }, path) {
    const unknown = Object.keys(fieldsOf(toolConfig)).find(
      (name) => !['functionCallingConfig', 'retrievalConfig'].includes(name),
    );
    if (unknown) return `Invalid JSON payload received. Unknown name "${unknown}" at 'tool_config': Cannot find field.`;
    const search = listOf(tools).find(({ googleSearch }) => googleSearch)?.googleSearch as Fields | undefined;
    const field = Object.keys(search ?? {}).find((name) => !['excludeDomains', 'blockingConfidence'].includes(name));
    if (field) return `Invalid JSON payload received. Unknown name "${field}" at 'tools[0].google_search'`;
    for (const part of listOf(contents).flatMap(({ parts }) => listOf(parts))) {
      const other = ['toolCall', 'toolResponse'].find((name) => part[name]);
      if (other) return `Invalid JSON payload received. Unknown name "${other}" at 'contents[1].parts[0]'`;
    }
    const isOld = /gemini-2/.test(path);
    if (search && isOld && listOf(tools).some(({ functionDeclarations }) => functionDeclarations))
      return 'Multiple tools are supported only when they are all search tools.';
    const { responseJsonSchema, responseSchema } = fieldsOf(generationConfig);
    if (search && isOld && (responseJsonSchema ?? responseSchema))
      return 'controlled generation is not supported with google_search tool';
    return undefined;
  },
};
const AZURE_SEARCH = new Set(['type', 'filters', 'user_location', 'search_context_size']);

export const frames = (...events: object[]): Reply =>
  raw(events.map((event) => `event: ${'type' in event ? event.type : 'message'}\ndata: ${JSON.stringify(event)}\n\n`));

interface Searched {
  query: string;
  /** What it found, and the answer cites. */
  found: { url: string; title: string };
  /** What the provider needs back, as it gave it. */
  seal: string;
  answer: string;
  /** Default: 1. */
  inputTokens?: number;
}

/** A response that has searched, in the exact form of its provider. */
export const searched = {
  anthropic({ query, found, seal, answer, inputTokens = 1 }: Searched): Reply {
    const cited = { type: 'web_search_result_location', ...found, cited_text: answer, encrypted_index: seal };
    const result = { type: 'web_search_result', ...found, encrypted_content: seal, page_age: null };
    const call = { type: 'server_tool_use', id: `srvtoolu_${seal}`, name: 'web_search', input: { query } };
    const blocks: [object, ...object[]][] = [
      [call],
      [{ type: 'web_search_tool_result', tool_use_id: call.id, content: [result] }],
      [
        { type: 'text', text: '' },
        { type: 'text_delta', text: answer },
        { type: 'citations_delta', citation: cited },
      ],
    ];
    return frames(
      { type: 'message_start', message: { id: 'm', usage: { input_tokens: inputTokens, output_tokens: 1 } } },
      ...blocks.flatMap(([content_block, ...deltas], index) => [
        { type: 'content_block_start', index, content_block },
        ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
        { type: 'content_block_stop', index },
      ]),
      {
        type: 'message_delta',
        delta: { stop_reason: 'end_turn' },
        usage: { output_tokens: 9, server_tool_use: { web_search_requests: 1 } },
      },
      { type: 'message_stop' },
    );
  },
  openai({ query, found, seal, answer, inputTokens = 1 }: Searched): Reply {
    const thought = { type: 'reasoning', id: `rs_${seal}`, encrypted_content: seal, summary: [] };
    const action = { type: 'search', query, sources: [{ type: 'url', url: found.url }] };
    const message = { type: 'message', id: 'msg_1', role: 'assistant', content: [] };
    const items = [thought, { type: 'web_search_call', id: `ws_${seal}`, status: 'completed', action }, message];
    const at = { item_id: message.id, output_index: 2 };
    const annotation = { type: 'url_citation', ...found, start_index: 0, end_index: 1 };
    return frames(
      { type: 'response.created', response: { id: 'r', created_at: 1, model: 'm' } },
      ...items.slice(0, 2).flatMap((item, output_index) => [
        { type: 'response.output_item.added', output_index, item },
        { type: 'response.output_item.done', output_index, item },
      ]),
      { type: 'response.output_item.added', output_index: 2, item: message },
      { type: 'response.output_text.delta', ...at, delta: answer },
      { type: 'response.output_text.annotation.added', ...at, annotation },
      { type: 'response.output_item.done', output_index: 2, item: message },
      { type: 'response.completed', response: { usage: { input_tokens: inputTokens, output_tokens: 1 } } },
    );
  },
  google({ query, found, seal, answer, inputTokens = 1 }: Searched): Reply {
    const call = { toolType: 'GOOGLE_SEARCH_WEB', id: `t_${seal}`, args: { queries: [query] } };
    const response = { toolType: call.toolType, id: call.id, response: { search_suggestions: '<div/>' } };
    const groundingMetadata = {
      webSearchQueries: [query],
      groundingChunks: [{ web: { uri: found.url, title: found.title } }],
    };
    const parts = [{ toolCall: call, thoughtSignature: seal }, { toolResponse: response }];
    return frames(
      { candidates: [{ content: { role: 'model', parts } }] },
      {
        candidates: [
          { content: { role: 'model', parts: [{ text: answer }] }, finishReason: 'STOP', groundingMetadata },
        ],
        usageMetadata: { promptTokenCount: inputTokens, candidatesTokenCount: 1 },
      },
    );
  },
};
