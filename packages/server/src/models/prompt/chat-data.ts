// What a server of chat completions sends besides text and calls, and wants back as it was: reasoning in fields of many names, and
// data on calls. The SDK reads the reasoning of two of the fields, as a text.

import type { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { SharedV4ProviderMetadata } from '@ai-sdk/provider';
import { PROVIDER_DATA_MAX_CHARACTERS } from '../model/model.ts';

type MetadataExtractor = NonNullable<Parameters<typeof createOpenAICompatible>[0]['metadataExtractor']>;
type Fields = Record<string, unknown>;

/** In the metadata of a response's end. */
export interface ChatData {
  /** The field of the text that is the response's reasoning. Null: it is in the other fields, or was part of the text. */
  readonly reasoningIn: 'reasoning_content' | 'reasoning' | null;
  /** The other fields of the message. */
  readonly message: Fields;
  /** The fields of each call, in the order in which they began. */
  readonly calls: readonly (Fields | null)[];
}

/** The key of ChatData in that metadata. */
export const CHAT_DATA = 'chatData';

/** `reasoning_content` (DeepSeek, Kimi, vLLM), `reasoning` (Groq, OpenRouter), `reasoning_details`, `extra_content` (Google), and more. */
const RETURNED = /^(reasoning|thinking|thought|extra_content)/;
/** The SDK's, in its order. */
const READ = ['reasoning_content', 'reasoning'] as const;

export const chatDataExtractor: MetadataExtractor = {
  // Responses are streamed.
  extractMetadata: async () => undefined,
  createStreamExtractor() {
    const texts = new Set<string>();
    const message: Fields = {};
    const calls = new Map<unknown, Fields | null>();
    let characters = 0;
    function keep(fields: Fields, name: string, value: unknown): void {
      characters += JSON.stringify(value).length;
      // What is longer than this is not kept, as a whole.
      if (characters <= PROVIDER_DATA_MAX_CHARACTERS) fields[name] = joined(fields[name], value);
    }
    return {
      processChunk(chunk) {
        const [choice] = listOf(isRecord(chunk) ? chunk.choices : undefined);
        const delta = isRecord(choice) ? choice.delta : undefined;
        if (!isRecord(delta)) return;
        for (const [name, value] of returned(delta)) {
          if (READ.some((one) => one === name)) texts.add(name);
          else keep(message, name, value);
        }
        for (const call of listOf(delta.tool_calls).filter(isRecord)) {
          const id = call.index ?? call.id ?? calls.size;
          const fields = calls.get(id) ?? {};
          for (const [name, value] of returned(call)) keep(fields, name, value);
          calls.set(id, Object.keys(fields).length > 0 ? fields : null);
        }
      },
      buildMetadata() {
        const reasoningIn = 'reasoning_details' in message ? null : (READ.find((name) => texts.has(name)) ?? null);
        const data: ChatData = { reasoningIn, message, calls: [...calls.values()] };
        return { [CHAT_DATA]: data } as unknown as SharedV4ProviderMetadata;
      },
    };
  },
};

function returned(fields: Fields): [string, unknown][] {
  return Object.entries(fields).filter(([name, value]) => RETURNED.test(name) && value !== null && value !== '');
}

/** A text continues, a list gets longer, and of anything else the last one counts. */
function joined(before: unknown, value: unknown): unknown {
  if (typeof before === 'string' && typeof value === 'string') return before + value;
  if (!Array.isArray(value)) return value;
  const list: unknown[] = Array.isArray(before) ? before : [];
  for (const detail of value) addDetail(list, detail);
  return list;
}

/** A text of reasoning that arrives in pieces is one again; its signature comes with one of them, or alone. */
function addDetail(list: unknown[], detail: unknown): void {
  const last = list.at(-1);
  const isSame = isRecord(last) && isRecord(detail) && last.type === detail.type && last.index === detail.index;
  const name = isSame
    ? ['text', 'summary'].find((field) => [last, detail].some((one) => isText(one[field])))
    : undefined;
  if (!isSame || name === undefined || ![last, detail].every((one) => isText(one[name] ?? ''))) {
    list.push(isRecord(detail) ? { ...detail } : detail);
    return;
  }
  const text = `${last[name] ?? ''}${detail[name] ?? ''}`;
  Object.assign(last, Object.fromEntries(Object.entries(detail).filter(([, value]) => value !== null)), {
    [name]: text,
  });
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
