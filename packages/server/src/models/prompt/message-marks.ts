// Which message of the transcript is at a place of a request.
//
// A provider names the place of what it refuses in the request that it got: `messages.3.content.1`. On the way there messages were joined,
// divided and added (valid-prompt.ts), and the provider's package has its own form. So the same request is made once more with marks:
// each text, input and result has the id of its message as its content. Whatever has been made of them, the marks at that place say whose
// they are.
import type { LanguageModelV4Message, LanguageModelV4ToolResultOutput } from '@ai-sdk/provider';
import type { ModelEntry } from '../model/model.ts';

const MARK = /\{\{messages\.([0-9a-f-]{36})\}\}/g;

/** The message of one part; undefined if it is of none that can be left out. */
type IdAt = (part: number) => string | undefined;

/** The message of each part of an entry. */
export function idsOf({ messageId }: ModelEntry): IdAt {
  return typeof messageId === 'string' ? () => messageId : (part) => messageId?.[part] ?? undefined;
}

/** With marks in place of contents. What is empty stays empty, because that decides about what becomes of it. */
export function withMarks(message: LanguageModelV4Message, idAt: IdAt): LanguageModelV4Message {
  const markAt = (part: number) => {
    const id = idAt(part);
    // What is not in the transcript gets a text without a mark.
    return id === undefined ? '{{}}' : `{{messages.${id}}}`;
  };
  switch (message.role) {
    case 'system':
      return message;
    case 'user':
      return { ...message, content: message.content.map((part, at) => textMarked(part, markAt(at))) };
    case 'assistant': {
      const content = message.content.map((part, at) =>
        part.type === 'tool-call' ? { ...part, input: { mark: markAt(at) } } : textMarked(part, markAt(at)),
      );
      return { ...message, content };
    }
    case 'tool': {
      const content = message.content.map((part, at) =>
        part.type === 'tool-result' ? { ...part, output: outputMarked(part.output, markAt(at)) } : part,
      );
      return { ...message, content };
    }
  }
}

function textMarked<P extends { type: string }>(part: P, mark: string): P {
  const isText = (part.type === 'text' || part.type === 'reasoning') && 'text' in part;
  return isText && String(part.text).trim() !== '' ? { ...part, text: mark } : part;
}

function outputMarked(output: LanguageModelV4ToolResultOutput, mark: string): LanguageModelV4ToolResultOutput {
  if (output.type === 'content') return { ...output, value: output.value.map((part) => textMarked(part, mark)) };
  return { type: output.type === 'error-text' ? 'error-text' : 'text', value: mark };
}

/** The messages whose marks are in a value, each once. */
export function messagesIn(value: unknown): string[] {
  return [...new Set([...JSON.stringify(value ?? null).matchAll(MARK)].map(([, id]) => id!))];
}
