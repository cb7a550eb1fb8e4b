// What models do not get although the conversation, or the agent, has it: files, messages and tools with which a provider refused a
// request. A retry names them (retry.ts). From then on they are left out of every call of the session, and of its forks. A file that a
// model accepted a request without, after it had refused it because of the file, is left out of the calls of that model.
//
// The transcript keeps everything. A message that is left out has its place in what the model gets, with a note as its content: the
// places of other messages stay the same, and the model knows which calls not to repeat.
import type { LeftOut, MessagePart } from '@signalbox/contract';
import { formatId } from '../lib/ids.ts';
import type { TranscriptEntry } from './transcript.ts';

/** One change, in the column `left_out`. `turn` and `step`: of the first model call without it; 0 in a fork. */
export interface StoredLeftOut extends Partial<Named> {
  readonly turn: number;
  readonly step: number;
  /** Only for this `provider/model`, which refused the files. */
  readonly model?: string;
}

type Named = Pick<LeftOut, 'fileIds' | 'messageIds' | 'tools'>;

/** Oldest first; null if there are none. */
export type LeftOutColumn = readonly StoredLeftOut[] | null;

/** As it was at a model call that was made before. */
export function leftOutAt(column: LeftOutColumn, at: { turn: number; step: number }): LeftOutColumn {
  return column?.filter(({ turn, step }) => turn < at.turn || (turn === at.turn && step <= at.step)) ?? null;
}

/** What all models don't get. */
export function leftOutOf(column: LeftOutColumn): Named {
  const ofAll = (column ?? []).filter(({ model }) => model === undefined);
  const all = <K extends keyof Named>(kind: K) => [...new Set(ofAll.flatMap((one) => one[kind] ?? []))];
  return { fileIds: all('fileIds'), messageIds: all('messageIds'), tools: all('tools') };
}

/** Ids of the files that this `provider/model` has refused. */
export function refusedFilesOf(column: LeftOutColumn, model: string): string[] {
  return (column ?? []).flatMap((one) => (one.model === model ? (one.fileIds ?? []) : []));
}

export function viewLeftOut(column: LeftOutColumn): LeftOut | null {
  if (!column) return null;
  const refusedFiles = column.flatMap(({ model, fileIds = [] }) =>
    model === undefined ? [] : fileIds.map((fileId) => ({ fileId, model })),
  );
  return { ...leftOutOf(column), refusedFiles };
}

/** For a fork, which has none of the model calls. */
export function inheritedLeftOut(column: LeftOutColumn): LeftOutColumn {
  return column?.map((one) => ({ ...one, turn: 0, step: 0 })) ?? null;
}

/** With notes in place of messages. A response that called tools, and the results, are left out together. */
export function withoutMessages<E extends Omit<TranscriptEntry, 'createdAt'>>(
  entries: readonly E[],
  { messageIds }: Pick<Named, 'messageIds'>,
): E[] {
  if (messageIds.length === 0) return [...entries];
  const isNamed = ({ messageId }: E) => messageIds.includes(formatId('msg', messageId));
  const calls = new Set(entries.filter(isNamed).flatMap(({ content }) => callIdsIn(content)));
  return entries.map((entry) => {
    if (!isNamed(entry) && !callIdsIn(entry.content).some((id) => calls.has(id))) return entry;
    // It can't be left out once more.
    const { providerData: _, messageId: __, ...kept } = entry;
    return { ...kept, role: 'user', content: [{ type: 'text', text: noteFor(entry) }] } as unknown as E;
  });
}

function callIdsIn(content: readonly MessagePart[]): string[] {
  return content.flatMap((part) => (part.type === 'tool_call' || part.type === 'tool_result' ? [part.toolCallId] : []));
}

function noteFor({ role, content }: Pick<TranscriptEntry, 'role' | 'content'>): string {
  if (role === 'tool') return '(The results of these calls are left out as well.)';
  if (role === 'user') return '(A message is left out here.)';
  const called = content.flatMap((part) => (part.type === 'tool_call' ? [part.tool] : []));
  if (called.length === 0) return '(A response is left out here.)';
  return `(A response is left out here. It called ${[...new Set(called)].join(', ')}: do not repeat that on your own.)`;
}

/** For the model, and the result of a call of the tool. */
export function leftOutToolText(name: string): string {
  return `The tool ${JSON.stringify(name)} is left out of this session.`;
}
