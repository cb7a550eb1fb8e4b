/** Messages of a session as messages of AG-UI, and back. */
import type { AssistantMessage, ContentPart, Message, ToolCall, UserMessage } from '@ag-ui/client';
import type { Content, FilePart, Message as StoredMessage } from '@signalbox/client';
import { sendableText } from '@signalbox/client/conversation';
import { bytesOfUrl } from '../bytes-of-url.ts';

/** The id of the message that has the result of a call, streamed and stored. */
export function resultMessageId(toolCallId: string): string {
  return `result_${toolCallId}`;
}

/** A result as the content of a tool message: a text as it is, everything else as JSON. */
export function resultContent({ output, error }: { output?: unknown; error?: string }): string {
  if (error !== undefined) return error;
  return typeof output === 'string' ? output : JSON.stringify(output ?? null);
}

export function toolCall(id: string, name: string, input: unknown): ToolCall {
  return { id, type: 'function', function: { name, arguments: JSON.stringify(input ?? null) } };
}

/** Stored messages, oldest first. A result is a message of its own in AG-UI. */
export function toMessages(stored: readonly StoredMessage[]): Message[] {
  const messages: Message[] = [];
  const calls = new Map<string, ToolCall>();
  for (const { messageId: id, role, content, rejected } of stored) {
    if (rejected) continue;
    if (role === 'user') {
      const parts = content.flatMap((part): ContentPart[] =>
        part.type === 'text' ? [{ type: 'text', text: part.text }] : part.type === 'file' ? [filePart(part)] : [],
      );
      const [first] = parts;
      messages.push({ id, role, content: parts.length === 1 && first?.type === 'text' ? first.text : parts });
      continue;
    }
    const message: AssistantMessage = { id, role: 'assistant' };
    const results: Message[] = [];
    for (const part of content) {
      if (part.type === 'text') message.content = (message.content ?? '') + part.text;
      if (part.type === 'tool_call') {
        const call = toolCall(part.toolCallId, part.tool, part.input);
        calls.set(call.id, call);
        message.toolCalls = [...(message.toolCalls ?? []), call];
      }
      if (part.type === 'tool_result') {
        const { toolCallId, input, error } = part;
        const call = calls.get(toolCallId);
        if (call && input !== undefined) call.function.arguments = JSON.stringify(input);
        const result = {
          id: resultMessageId(toolCallId),
          role: 'tool',
          toolCallId,
          content: resultContent(part),
        } as const;
        results.push(error === undefined ? result : { ...result, error });
      }
    }
    // What a provider ran itself has its results in the response.
    messages.push(...(role === 'assistant' ? [message] : []), ...results);
  }
  return messages;
}

const partTypes = { image: 'image', audio: 'audio', video: 'video' } as const;

function filePart({ fileId, mediaType, filename }: FilePart): ContentPart {
  const type = partTypes[mediaType.split('/')[0] as keyof typeof partTypes] ?? 'document';
  const source = { type: 'file', value: fileId, provider: 'signalbox', mimeType: mediaType } as const;
  return { type, source, ...(filename !== undefined && { metadata: { filename } }) };
}

type Upload = (file: Uint8Array<ArrayBuffer>, mediaType: string | undefined) => Promise<{ fileId: string }>;

/** The content of a user message. Uploads the files that the service does not have. */
export async function contentOf({ content }: UserMessage, upload: Upload): Promise<Content> {
  if (typeof content === 'string') return sendableText(content);
  return await Promise.all(
    content.map(async (part) => {
      if (part.type === 'text') return { type: 'text' as const, text: sendableText(part.text) };
      const { source } = part;
      if (source.type === 'file' && source.provider === 'signalbox')
        return { type: 'file' as const, fileId: source.value };
      const url = source.type === 'data' ? `data:;base64,${source.value}` : source.value;
      const bytes = await bytesOfUrl(url);
      if (!bytes) throw new Error(`A ${part.type} needs its data, a data: or blob: URL, or a file of the service`);
      return { type: 'file' as const, fileId: (await upload(bytes, source.mimeType)).fileId };
    }),
  );
}
