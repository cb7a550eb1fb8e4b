// Stores the files that tools return, for their session, and remembers them until the end of their call is shown.
import type { FilePart } from '@signalbox/contract';
import { createFile } from '../files/create.ts';
import type { NewChunk } from '../journal/segment.ts';
import { ApiError } from '../lib/api-error.ts';
import { formatId } from '../lib/ids.ts';
import { type Operation, toolCallIdOf } from '../session-rows/operations.ts';
import type { SaveFile } from '../tools/tool/returned-file.ts';
import type { RunTool } from '../tools/tool/tool.ts';
import { agentSource, logIds, type TurnContext } from './turn-context.ts';

export function withFileStorage(context: TurnContext, run: RunTool): RunTool {
  const { platform, session } = context;
  const { environment, sessionId } = session.row;
  const files = new Map<string, FilePart[]>();
  context.createdFiles = files;
  return (call, signal) => {
    const saveFile: SaveFile = async ({ content, mediaType, filename, length }) => {
      let failure: { error: unknown } | undefined;
      async function* watched(): AsyncGenerator<Uint8Array> {
        try {
          yield* content;
        } catch (error) {
          failure = { error };
          throw error;
        }
      }
      try {
        const file = { environment, sessionId, mediaType, filename, length };
        const part = await createFile(platform, agentSource(context), file, watched());
        files.set(call.operationId, [...(files.get(call.operationId) ?? []), part]);
        return part;
      } catch (error) {
        if (failure) throw failure.error;
        if (error instanceof ApiError) return `it was not stored: ${error.message}`;
        platform.log.warn({ ...logIds(context), err: error }, 'a file that a tool returned could not be stored');
        return 'it could not be stored';
      }
    };
    return run({ ...call, saveFile }, signal);
  };
}

/** The chunks that show what files the call has returned, to be shown before its result. */
export function createdFileChunks({ createdFiles }: TurnContext, call: Operation): NewChunk[] {
  const operationId = formatId('op', call.operationId);
  const files = createdFiles?.get(operationId) ?? [];
  createdFiles?.delete(operationId);
  return files.map((file) => ({ type: 'file.created', toolCallId: toolCallIdOf(call), file }));
}
