/** The stored transcript of a session as messages of the AI SDK. */
import type { FileUIPart, UIMessage } from 'ai';
import { filesIn } from '../conversation/transcript.ts';
import type { FilePart, Message, MessagePart, ToolResultPart } from '../types.generated.ts';
import { type FileUrl, metadataOfFile, type SignalboxMetadata, sourcePart } from './turn-message.ts';
import { defaultFileUrl, messageIdOfTurn } from './turn-stream.ts';

export interface UIMessagesOptions {
  /** The session of the messages. It goes into their metadata, so that a chat knows what it continues. */
  sessionId: string;
  /** The URL of a file. Default: `signalbox:file_…`. */
  fileUrl?: FileUrl | undefined;
}

type Part = UIMessage['parts'][number];
type Call = Extract<Part, { toolCallId: string }>;

/**
 * Messages of a transcript, oldest first, as `messages` of `useChat`. Each turn has one assistant message, with the id that it also
 * has when it is streamed. The transcript has no reasoning and no pending approvals: resuming the stream brings these for
 * the current turn.
 *
 *     const stored = await Array.fromAsync(client.sessions.messages(sessionId));
 *     useChat({ id: sessionId, messages: toUIMessages(stored, { sessionId }), resume: true, transport });
 */
export function toUIMessages<M extends UIMessage<SignalboxMetadata> = UIMessage<SignalboxMetadata>>(
  messages: Iterable<Message>,
  { sessionId, fileUrl = defaultFileUrl }: UIMessagesOptions,
): M[] {
  const result: UIMessage<SignalboxMetadata>[] = [];
  for (const { messageId, role, turn, content, rejected } of messages) {
    if (rejected) continue;
    const isUser = role === 'user';
    const id = isUser || turn === null ? messageId : messageIdOfTurn(turn);
    let message = result.at(-1);
    if (message?.id !== id) {
      message = { id, role: isUser ? 'user' : 'assistant', metadata: { sessionId, turn }, parts: [] };
      result.push(message);
    }
    if (role === 'assistant') message.parts.push({ type: 'step-start' });
    for (const part of content) addPart(message.parts, part, fileUrl);
  }
  // The caller says which tools the messages name.
  return result as M[];
}

function addPart(parts: Part[], part: MessagePart, fileUrl: FileUrl): void {
  switch (part.type) {
    case 'text':
      if (part.text !== '' || !part.sources) parts.push({ type: 'text', text: part.text, state: 'done' });
      for (const source of part.sources ?? []) {
        const before = parts.filter(({ type }) => type === 'source-url' || type === 'source-document').length;
        parts.push(sourcePart(source, `source-${before}`));
      }
      break;
    case 'file':
      parts.push(toFileUIPart(part, fileUrl));
      break;
    case 'tool_call': {
      const { toolCallId, tool, input } = part;
      parts.push({ type: `tool-${tool}`, toolCallId, state: 'input-available', input, providerExecuted: true });
      break;
    }
    case 'tool_result': {
      const index = parts.findIndex((other) => 'toolCallId' in other && other.toolCallId === part.toolCallId);
      if (index < 0) break;
      parts[index] = withResult(parts[index] as Call, part);
      parts.push(...filesIn(part.output).map((file) => toFileUIPart(file, fileUrl)));
    }
  }
}

function withResult(call: Call, { input = call.input, output, error }: ToolResultPart): Part {
  const { type, toolCallId } = call as Extract<Call, { type: `tool-${string}` }>;
  const common = { type, toolCallId, providerExecuted: true, input };
  return error === undefined
    ? { ...common, state: 'output-available', output: output ?? null }
    : { ...common, state: 'output-error', errorText: error };
}

function toFileUIPart(file: FilePart, fileUrl: FileUrl): FileUIPart {
  const { mediaType, filename } = file;
  return {
    type: 'file',
    mediaType,
    url: fileUrl(file),
    ...(filename !== undefined && { filename }),
    providerMetadata: metadataOfFile(file),
  };
}
