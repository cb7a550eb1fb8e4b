// What people, models and tools said, as attributes of spans, for operators who turned that on: JSON in the form of OpenTelemetry's
// conventions for generative AI.
//
// It comes from what the journal has, so secrets are already replaced in it, and a file is its name, type and size. Each attribute is
// limited: a long text is cut, and of a long conversation only the newest messages are shown. A mark says how much is missing.
import type { MessagePart, Source } from '@signalbox/contract';
import { JsonText } from '../lib/json/json-text.ts';
import { MAX_JSON_DEPTH } from '../lib/text.ts';
import type { ModelCall, ModelEntry, ModelEvent } from '../models/model/model.ts';
import type { Attributes } from '../observe/tracing.ts';
import type { ToolOutcome } from '../tools/tool/tool.ts';

/** The limit of a text, and of a string within a value. */
const TEXT_MAX_CHARACTERS = 32 * 1024;
/** The limit of an attribute, before it is written as JSON. */
const ATTRIBUTE_MAX_CHARACTERS = 64 * 1024;
/** What a part, or an item of a value, takes besides its text. */
const FRAME_CHARACTERS = 32;

/** How many more characters an attribute may have. */
interface Room {
  left: number;
}

const newRoom = (): Room => ({ left: ATTRIBUTE_MAX_CHARACTERS });

/** The instructions, messages and tools that a model is called with. */
export function askedContent({ instructions, transcript, tools }: ModelCall): Attributes {
  const { messages, leftOut } = newestMessages(transcript);
  const instruction = { type: 'text', content: cutText(instructions, newRoom()) };
  return {
    'gen_ai.system_instructions': instructions === '' ? undefined : JSON.stringify([instruction]),
    'gen_ai.input.messages': JSON.stringify(messages),
    'signalbox.omitted_messages': leftOut || undefined,
    'gen_ai.tool.definitions':
      tools.length === 0 ? undefined : JSON.stringify(tools.map(({ name }) => ({ type: 'function', name }))),
  };
}

export function argumentsContent(input: unknown): Attributes {
  return { 'gen_ai.tool.call.arguments': JSON.stringify(asObject('input', shortened(input, newRoom()))) };
}

/** None for a failed call: the conventions know only the result of a successful one. The error is in the next call of the model. */
export function resultContent({ error, output }: ToolOutcome): Attributes {
  if (error !== undefined) return {};
  return { 'gen_ai.tool.call.result': JSON.stringify(asObject('output', shortened(output, newRoom()))) };
}

/** A model's response, as it comes. */
export interface HeardResponse {
  add(event: ModelEvent): void;
  /** No attribute if the model said nothing. */
  content(finishReason: string): Attributes;
}

export function createHeardResponse({ shows }: Pick<ModelCall, 'shows'>): HeardResponse {
  const parts = createParts(newRoom());
  let open: { type: 'text' | 'reasoning'; text: string; characters: number } | undefined;

  function write(type: 'text' | 'reasoning', piece: string): void {
    if (open?.type !== type) close();
    open ??= { type, text: '', characters: 0 };
    open.text += piece.slice(0, TEXT_MAX_CHARACTERS - open.text.length);
    open.characters += piece.length;
  }

  function close(more: { sources?: readonly Source[] } = {}): void {
    if (!open) return;
    const { type, text, characters } = open;
    open = undefined;
    parts.add((room) => ({ type, content: cutText(text, room, characters), ...sourcesOf(more, room) }));
  }

  return {
    add(event) {
      if (event.type === 'text') write('text', event.delta);
      if (event.type === 'reasoning' && shows?.reasoning) write('reasoning', event.delta);
      if (event.type === 'shown') write('text', event.text);
      if (event.type === 'ran') {
        close(event);
        for (const call of event.calls) {
          parts.add((room) => providerCall(call.tool, call.input, room));
          parts.add((room) => providerResult(call, room));
        }
      }
      if (event.type !== 'toolCall') return;
      close();
      const { name, input, operationId } = event;
      const id = operationId && callIdOf(operationId);
      parts.add((room) => ({ type: 'tool_call', id, name, arguments: shortened(input, room) }));
    },

    content(finishReason) {
      close();
      if (parts.all().length === 0) return {};
      const message = { role: 'assistant', parts: parts.all(), finish_reason: finishReason };
      return { 'gen_ai.output.messages': JSON.stringify([message]) };
    },
  };
}

/** The ID of a tool call, by the ID of its operation (`op_…`). */
export function callIdOf(operationId: string): string {
  return operationId.replace(/^op_/, 'call_');
}

/** As many as there is room for, oldest first. */
function newestMessages(transcript: readonly ModelEntry[]): { messages: object[]; leftOut: number } {
  const room = newRoom();
  const messages: object[] = [];
  let at = transcript.length;
  while (at > 0 && room.left > 0) {
    at -= 1;
    const { role, content } = transcript[at]!;
    const parts = createParts(room);
    for (const part of content) parts.add(() => partOf(part, room));
    messages.unshift({ role, parts: parts.all() });
  }
  return { messages, leftOut: at };
}

interface Parts {
  add(part: (room: Room) => object): void;
  all(): object[];
}

function createParts(room: Room): Parts {
  const parts: object[] = [];
  let leftOut = 0;
  return {
    add(part) {
      if (room.left <= 0) {
        leftOut += 1;
        return;
      }
      room.left -= FRAME_CHARACTERS;
      parts.push(part(room));
    },
    all: () => (leftOut === 0 ? parts : [...parts, { type: 'text', content: `… [${leftOut} more parts]` }]),
  };
}

function partOf(part: MessagePart, room: Room): object {
  switch (part.type) {
    case 'text':
      return { type: 'text', content: cutText(part.text, room), ...sourcesOf(part, room) };
    case 'file': {
      const { fileId, mediaType, bytes, filename } = part;
      const file = { modality: modalityOf(mediaType), mime_type: mediaType, file_id: fileId };
      return { type: 'file', ...file, name: filename, size: bytes };
    }
    case 'tool_call': {
      const { toolCallId: id, tool, input, by } = part;
      if (by) return { id, ...providerCall(tool, input, room) };
      return { type: 'tool_call', id, name: tool, arguments: shortened(input, room) };
    }
    case 'tool_result': {
      const { toolCallId: id, output, error, by } = part;
      if (by) return { id, ...providerResult(part, room) };
      const response = error === undefined ? shortened(output, room) : { error: cutText(error, room) };
      return { type: 'tool_call_response', id, response: response ?? null };
    }
  }
}

/** What the model's provider ran itself. */
function providerCall(tool: string, input: unknown, room: Room): object {
  return { type: 'server_tool_call', name: tool, server_tool_call: { type: tool, input: shortened(input, room) } };
}

function providerResult({ output, error }: { output?: unknown; error?: string }, room: Room): object {
  const result = error === undefined ? { output: shortened(output, room) } : { error: cutText(error, room) };
  return { type: 'server_tool_call_response', server_tool_call_response: { type: 'result', ...result } };
}

/** The conventions have no place for what a text cites, but allow more fields. */
function sourcesOf({ sources = [] }: { sources?: readonly Source[] }, room: Room): object {
  return sources.length === 0 ? {} : { sources: shortened(sources, room) };
}

function modalityOf(mediaType: string): string {
  return /^(image|audio|video)\//i.exec(mediaType)?.[1]?.toLowerCase() ?? 'document';
}

/** `characters`: of the whole text, if this is only its beginning. */
function cutText(text: string, room: Room, characters = text.length): string {
  const most = Math.max(0, Math.min(TEXT_MAX_CHARACTERS, room.left));
  room.left -= Math.min(characters, most);
  return characters <= most ? text : `${text.slice(0, most).toWellFormed()}… [${characters} characters in all]`;
}

/** A JSON value with its strings cut, and without the items and fields that there is no room for. */
function shortened(value: unknown, room: Room, depth = 0): unknown {
  room.left -= FRAME_CHARACTERS;
  // The text of a long value: as values, it would take many times the memory.
  if (value instanceof JsonText) return cutText(value.text, room);
  if (typeof value === 'string') return cutText(value, room);
  if (typeof value !== 'object' || value === null) return value;
  if (depth === MAX_JSON_DEPTH) return '…';
  const entries = Object.entries(value);
  const shown: [name: string, item: unknown][] = [];
  for (const [name, item] of entries) {
    if (room.left <= 0) break;
    shown.push([cutText(name, room), shortened(item, room, depth + 1)]);
  }
  const leftOut = entries.length - shown.length;
  const mark: typeof shown = leftOut === 0 ? [] : [['…', `… [${leftOut} more]`]];
  const all = [...shown, ...mark];
  return Array.isArray(value) ? all.map(([, item]) => item) : Object.fromEntries(all);
}

function asObject(name: string, value: unknown): object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : { [name]: value };
}
