/** Messages of a page, from the transcript: whole turns, without what is shown only while a turn runs. */
import type { FilePart, Message, Source } from '../types.generated.ts';
import { newTool } from './turn.ts';
import type { AssistantPart, SessionMessage, ToolPart, UserMessage } from './types.ts';

/** The messages of these turns. The entries of a turn are together, in order. */
export function messagesOf(entries: readonly Message[], idOf: (messageId: string) => string): SessionMessage[] {
  const messages: SessionMessage[] = [];
  let last: { turn: number; parts: AssistantPart[] } | undefined;
  for (const entry of entries) {
    if (entry.rejected) continue;
    const turn = entry.turn ?? 0;
    if (entry.role === 'user') {
      messages.push(userMessageOf(entry, idOf(entry.messageId)));
      continue;
    }
    if (last?.turn !== turn) {
      last = { turn, parts: [] };
      messages.push({ role: 'assistant', id: `turn_${turn}`, status: 'done', stopReason: null, error: null, ...last });
    }
    addEntry(last.parts, entry);
  }
  return messages;
}

export function userMessageOf({ messageId, turn, content, createdAt }: Message, id: string): UserMessage {
  const parts = content.flatMap((part, index): UserMessage['parts'] => {
    if (part.type === 'text') return [{ type: 'text', id: `text_${index}`, text: part.text, isStreaming: false }];
    return part.type === 'file' ? [{ type: 'file', id: `file_${index}`, file: part }] : [];
  });
  return { role: 'user', id, messageId, turn, parts, status: 'sent', createdAt };
}

/** What the agent has done in entries of one turn. */
export function partsOf(entries: readonly Message[]): readonly AssistantPart[] {
  const parts: AssistantPart[] = [];
  for (const entry of entries) addEntry(parts, entry);
  return parts;
}

function addEntry(parts: AssistantPart[], { content }: Message): void {
  let isNewResponse = true;
  for (const part of content) {
    const last = parts.at(-1);
    if (part.type === 'text' && last?.type === 'text' && !isNewResponse) {
      parts[parts.length - 1] = { ...last, text: last.text + part.text, ...sourcesOf(part) };
    } else if (part.type === 'text' && (part.text !== '' || part.sources)) {
      const id = `text_${parts.filter(({ type }) => type === 'text').length}`;
      parts.push({ type: 'text', id, text: part.text, isStreaming: false, ...sourcesOf(part) });
      isNewResponse = false;
    } else if (part.type === 'tool_call') {
      // Without a result its turn was cancelled meanwhile.
      const { toolCallId, tool, input, by } = part;
      parts.push({ ...newTool(toolCallId), tool, input, state: 'unknown', isStarted: true, ...(by && { by }) });
    } else if (part.type === 'tool_result') {
      const { toolCallId, input, output, error = null, outcomeUnknown } = part;
      const at = parts.findLastIndex(({ type, id }) => type === 'tool' && id === toolCallId);
      if (at === -1) continue;
      const call = parts[at] as ToolPart;
      parts[at] = {
        ...call,
        ...(input !== undefined && { input, isEdited: true, modelInput: call.input }),
        state: outcomeUnknown ? 'unknown' : error === null ? 'done' : 'failed',
        output,
        error,
        files: filesIn(output),
      };
    }
  }
}

function sourcesOf({ sources }: { sources?: readonly Source[] }): { sources?: readonly Source[] } {
  return sources ? { sources } : {};
}

/** The files that a tool returned: its output, or items of it. */
export function filesIn(output: unknown): FilePart[] {
  return [output].flat().filter((item): item is FilePart => {
    const { type, fileId, mediaType, bytes } = (item ?? {}) as Partial<FilePart>;
    return type === 'file' && typeof fileId === 'string' && typeof mediaType === 'string' && typeof bytes === 'number';
  });
}
