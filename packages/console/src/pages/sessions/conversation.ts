/**
 * What a user reads of a session, in order: messages and tool calls.
 *
 * It is built from two sources that overlap. The **transcript** has whole messages, including the user's, but a step only once it
 * is stored. The **journal** has every chunk as it is streamed, but no user messages. A finished turn is therefore read from the
 * transcript, and the current turn from its chunks, with its first message from the transcript (follow.ts decides which).
 * Entries have the same keys from either source, so nothing on the page moves when a turn ends.
 */
import type { Chunk, FilePart, Message } from '@signalbox/client';

export interface TextEntry {
  kind: 'text';
  key: string;
  turn: number;
  text: string;
}

/** What the model thought before it responded. It is only in the journal, and shown as long as the turn is read from there. */
export interface ReasoningEntry {
  kind: 'reasoning';
  key: string;
  turn: number;
  text: string;
}

export interface UserEntry {
  kind: 'user';
  key: string;
  /** null: its turn has not started. */
  turn: number | null;
  text: string;
  files: readonly FilePart[];
  createdAt: string;
  /** Not written by a user: the service told the model to repeat its output, because of `outputSchema`. */
  isRepair: boolean;
}

export interface CallEntry {
  kind: 'call';
  /** The id of the call. */
  key: string;
  turn: number;
  tool: string;
  /** The model's input. */
  input: unknown;
  /** The input after an approver edited it. */
  editedInput?: unknown;
  /** The input as far as the model has written it. */
  written?: string;
  /** Whether the call started, or is for a client to run. */
  started: boolean;
  /** Set if the call needs or needed approval. */
  decision?: 'pending' | 'approved' | 'denied' | 'expired' | 'cancelled';
  reason?: string;
  result?: { output?: unknown; error?: string; outcomeUnknown?: boolean };
  /** What the tool returned as files. */
  files?: readonly FilePart[];
}

export type Entry = UserEntry | TextEntry | ReasoningEntry | CallEntry;

/** The id of a call's approval: the same operation with the other prefix. */
export function operationIdOf({ key }: CallEntry): string {
  return key.replace(/^call_/, 'op_');
}

/** A turn built from its chunks. */
export class LiveTurn {
  readonly turn: number;
  /** Its last chunk has arrived, or the session ended. */
  isOver = false;
  #entries: (TextEntry | ReasoningEntry | CallEntry)[] = [];
  /** For each text, reasoning and written input, the sequence numbers of its deltas and their end offsets. */
  readonly #pieces = new Map<string, { seq: number; end: number }[]>();
  #texts = 0;
  #thoughts = 0;

  constructor(turn: number) {
    this.turn = turn;
  }

  /** The current entries. An unchanged entry is the same object as before. */
  entries(): readonly Entry[] {
    return this.#entries.filter((entry) => entry.kind === 'call' || entry.text !== '');
  }

  add(chunk: Chunk): void {
    switch (chunk.type) {
      case 'message.chunk':
        this.#say('text', chunk.delta, chunk.seq);
        break;
      case 'reasoning.chunk':
        this.#say('reasoning', chunk.delta, chunk.seq);
        break;
      case 'tool.input.chunk':
        this.#write(chunk.toolCallId, chunk.toolName, chunk.delta, chunk.seq);
        break;
      case 'message.reset':
        this.#unsay(chunk.fromSeq);
        break;
      case 'approval.requested':
        this.#call(chunk.toolCallId, { tool: chunk.name, input: chunk.input, decision: 'pending' });
        break;
      case 'approval.resolved': {
        const reason = chunk.reason === undefined ? {} : { reason: chunk.reason };
        this.#call(chunk.operationId.replace(/^op_/, 'call_'), { decision: chunk.decision, ...reason });
        break;
      }
      case 'tool.call': {
        const asked = this.#entries.find(({ key }) => key === chunk.toolCallId);
        const isAsked = asked?.kind === 'call' && asked.written === undefined;
        const isEdited = isAsked && JSON.stringify(asked.input) !== JSON.stringify(chunk.input);
        const input = isEdited ? { editedInput: chunk.input } : { input: chunk.input };
        this.#call(chunk.toolCallId, { tool: chunk.tool, started: !chunk.notRun, ...input });
        break;
      }
      case 'tool.result': {
        const { tool, input, output, error, outcomeUnknown } = chunk;
        // A result names its tool if the call did not run; an approval may be all that was shown of it.
        const asked = tool === undefined ? {} : { tool, input };
        this.#call(chunk.toolCallId, { ...asked, result: definedOf({ output, error, outcomeUnknown }) });
        break;
      }
      case 'file.created': {
        const call = this.#entries.find(({ key }) => key === chunk.toolCallId);
        const files = call?.kind === 'call' ? (call.files ?? []) : [];
        this.#call(chunk.toolCallId, { files: [...files, chunk.file] });
        break;
      }
      case 'turn.completed':
        this.isOver = true;
        break;
      case 'session.status':
        // A turn that failed continues when it is retried.
        this.isOver = chunk.status !== 'running' && chunk.status !== 'waiting';
    }
  }

  #say(kind: 'text' | 'reasoning', delta: string, seq: number): void {
    const last = this.#entries.at(-1);
    if (last?.kind === kind) {
      const text = last.text + delta;
      this.#entries[this.#entries.length - 1] = { ...last, text };
      this.#pieces.get(last.key)!.push({ seq, end: text.length });
    } else {
      const key = kind === 'text' ? textKey(this.turn, this.#texts++) : `${this.turn}:thought:${this.#thoughts++}`;
      this.#entries.push({ kind, key, turn: this.turn, text: delta });
      this.#pieces.set(key, [{ seq, end: delta.length }]);
    }
  }

  #write(key: string, tool: string, delta: string, seq: number): void {
    const before = this.#entries.find((entry) => entry.key === key);
    const written = ((before?.kind === 'call' ? before.written : undefined) ?? '') + delta;
    this.#call(key, { tool, written });
    this.#pieces.set(key, [...(this.#pieces.get(key) ?? []), { seq, end: written.length }]);
  }

  /** Removes what the model has shown from this sequence number on, because it is void. */
  #unsay(fromSeq: number): void {
    this.#entries = this.#entries.flatMap((entry) => {
      const text = entry.kind === 'call' ? entry.written : entry.text;
      if (text === undefined) return [entry];
      const pieces = this.#pieces.get(entry.key)!;
      const kept = pieces.filter(({ seq }) => seq < fromSeq);
      if (kept.length === pieces.length) return [entry];
      this.#pieces.set(entry.key, kept);
      if (entry.kind === 'call') return [];
      return [{ ...entry, text: entry.text.slice(0, kept.at(-1)?.end ?? 0) }];
    });
  }

  #call(key: string, change: Partial<CallEntry>): void {
    const index = this.#entries.findIndex((entry) => entry.key === key);
    const before = this.#entries[index];
    if (before?.kind === 'call') {
      const { written: _, ...known } = before;
      // The input is complete as soon as anything else is known of the call.
      this.#entries[index] = { ...known, ...change };
    } else if (change.tool !== undefined)
      this.#entries.push({
        kind: 'call',
        key,
        turn: this.turn,
        tool: change.tool,
        input: null,
        started: false,
        ...change,
      });
  }
}

/** The entries of these messages: texts, and calls with their results. */
export function entriesOf(messages: readonly Message[]): Entry[] {
  const entries: Entry[] = [];
  const calls = new Map<string, number>();
  const texts = new Map<number, number>();
  let last = 0;
  for (const message of messages) {
    const turn = message.turn ?? 0;
    if (message.role === 'user') {
      entries.push({ ...userEntry(message), isRepair: turn === last });
      last = turn;
      continue;
    }
    for (const part of message.content) {
      if (part.type === 'text' && part.text !== '') {
        const count = texts.get(turn) ?? 0;
        texts.set(turn, count + 1);
        entries.push({ kind: 'text', key: textKey(turn, count), turn, text: part.text });
      } else if (part.type === 'tool_call') {
        const { toolCallId: key, tool, input } = part;
        calls.set(key, entries.length);
        entries.push({ kind: 'call', key, turn, tool, input, started: true });
      } else if (part.type === 'tool_result') {
        const { output, error, outcomeUnknown } = part;
        const index = calls.get(part.toolCallId);
        if (index === undefined) continue;
        entries[index] = {
          ...(entries[index] as CallEntry),
          ...(part.input !== undefined && { editedInput: part.input }),
          result: definedOf({ output, error, outcomeUnknown }),
          files: filesIn(output),
        };
      }
    }
  }
  return entries;
}

export function userEntry({ messageId, turn, content, createdAt }: Message): UserEntry {
  const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n\n');
  const files = content.filter((part) => part.type === 'file');
  return { kind: 'user', key: messageId, turn, text, files, createdAt, isRepair: false };
}

/** The files that a tool returned: its output, or items of it. */
function filesIn(output: unknown): FilePart[] {
  return [output].flat().filter((item): item is FilePart => {
    const { type, fileId, mediaType, bytes, filename = '' } = (item ?? {}) as Partial<FilePart>;
    const isFile = type === 'file' && typeof fileId === 'string' && typeof mediaType === 'string';
    return isFile && typeof bytes === 'number' && typeof filename === 'string';
  });
}

function textKey(turn: number, count: number): string {
  return `${turn}:${count}`;
}

function definedOf<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as never;
}
