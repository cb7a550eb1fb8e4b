/**
 * What a person reads of a Session, in order: what was said, and the calls of tools.
 *
 * It comes from two sources that overlap. The **transcript** has whole messages, those of people too, but a step only when it is
 * stored. The **journal** has every piece as it is shown, but nothing that people wrote. So a turn that is over is read from the
 * transcript, and a turn under way from its chunks, with its first message from the transcript (follow.ts says which is which).
 * Entries have the same keys from either source: when a turn is over, what stands on the page stays where it is.
 */
import type { Chunk, Message } from '@signalbox/client';

export interface TextEntry {
  kind: 'text';
  key: string;
  turn: number;
  text: string;
}

export interface UserEntry {
  kind: 'user';
  key: string;
  /** null: its turn has not begun. */
  turn: number | null;
  text: string;
  createdAt: string;
  /** Not a person's: the service told the model to answer again, as `outputSchema` asks. */
  isRepair: boolean;
}

export interface CallEntry {
  kind: 'call';
  /** The call's id. */
  key: string;
  turn: number;
  tool: string;
  /** As the model asked for it. */
  input: unknown;
  /** Where a person put another in its place. */
  editedInput?: unknown;
  /** Whether it was seen to run, or to be somebody's to run. */
  started: boolean;
  /** Where a person is, or was, asked. */
  decision?: 'pending' | 'approved' | 'denied' | 'expired' | 'cancelled';
  reason?: string;
  result?: { output?: unknown; error?: string; outcomeUnknown?: boolean };
}

export type Entry = UserEntry | TextEntry | CallEntry;

/** The approval of a call: the same operation, under its other prefix. */
export function operationIdOf({ key }: CallEntry): string {
  return key.replace(/^call_/, 'op_');
}

/** A turn as its chunks show it. */
export class LiveTurn {
  readonly turn: number;
  /** Its last chunk, or that of the Session, has come. */
  isOver = false;
  #entries: (TextEntry | CallEntry)[] = [];
  /** Of each text the sequence number of its deltas, and where they end in it. */
  readonly #pieces = new Map<string, { seq: number; end: number }[]>();
  #texts = 0;

  constructor(turn: number) {
    this.turn = turn;
  }

  /** As of now; an entry that has not changed is the same object as before. */
  entries(): readonly Entry[] {
    return this.#entries.filter((entry) => entry.kind !== 'text' || entry.text !== '');
  }

  add(chunk: Chunk): void {
    switch (chunk.type) {
      case 'message.chunk':
        this.#say(chunk.delta, chunk.seq);
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
        const isEdited = asked?.kind === 'call' && JSON.stringify(asked.input) !== JSON.stringify(chunk.input);
        const input = isEdited ? { editedInput: chunk.input } : { input: chunk.input };
        this.#call(chunk.toolCallId, { tool: chunk.tool, started: !chunk.notRun, ...input });
        break;
      }
      case 'tool.result': {
        const { tool, input, output, error, outcomeUnknown } = chunk;
        // Of a client tool's call that did not run: nothing but an approval was shown of it before.
        const asked = tool === undefined ? {} : { tool, input };
        this.#call(chunk.toolCallId, { ...asked, result: definedOf({ output, error, outcomeUnknown }) });
        break;
      }
      case 'turn.completed':
        this.isOver = true;
        break;
      case 'session.status':
        if (chunk.status !== 'running' && chunk.status !== 'waiting') this.isOver = true;
    }
  }

  #say(delta: string, seq: number): void {
    const last = this.#entries.at(-1);
    if (last?.kind === 'text') {
      const text = last.text + delta;
      this.#entries[this.#entries.length - 1] = { ...last, text };
      this.#pieces.get(last.key)!.push({ seq, end: text.length });
    } else {
      const key = textKey(this.turn, this.#texts++);
      this.#entries.push({ kind: 'text', key, turn: this.turn, text: delta });
      this.#pieces.set(key, [{ seq, end: delta.length }]);
    }
  }

  /** The model is asked again: what it said from there on does not hold. */
  #unsay(fromSeq: number): void {
    this.#entries = this.#entries.map((entry) => {
      if (entry.kind !== 'text') return entry;
      const pieces = this.#pieces.get(entry.key)!;
      const kept = pieces.filter(({ seq }) => seq < fromSeq);
      if (kept.length === pieces.length) return entry;
      this.#pieces.set(entry.key, kept);
      return { ...entry, text: entry.text.slice(0, kept.at(-1)?.end ?? 0) };
    });
  }

  #call(key: string, change: Partial<CallEntry>): void {
    const index = this.#entries.findIndex((entry) => entry.key === key);
    const before = this.#entries[index];
    if (before?.kind === 'call') this.#entries[index] = { ...before, ...change };
    else if (change.tool !== undefined)
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

/** What people and the model said in these messages, and the calls with their results. */
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
        };
      }
    }
  }
  return entries;
}

export function userEntry({ messageId, turn, content, createdAt }: Message): UserEntry {
  const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n\n');
  return { kind: 'user', key: messageId, turn, text, createdAt, isRepair: false };
}

function textKey(turn: number, count: number): string {
  return `${turn}:${count}`;
}

function definedOf<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as never;
}
