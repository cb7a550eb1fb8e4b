/**
 * One turn of a session as one assistant message of the AI SDK: turns chunks of the journal into chunks of a UI message stream.
 *
 * - A **step** of the message holds a response and the tool calls that it requests. A response that continues the text of the
 *   previous one stays in its step, because the journal may later void both at once (`message.reset`).
 * - `message.reset` voids a part of the current step. The AI SDK can only void a whole one (`reset-step`), so the rest of the step
 *   is repeated. For that, each part keeps the chunks that show it.
 * - **Who acts**: `providerExecuted` is true while the service is responsible for a call, and false from the moment when the page
 *   has to run it. The AI SDK calls `onToolCall` exactly for those.
 *
 * It accepts any sequence of chunks and always writes a valid stream: what refers to something unknown is left out.
 */
import type { UIMessageChunk } from 'ai';
import type { Chunk, FilePart, SessionError, StopReason, Usage, WaitingFor } from '../types.generated.ts';

/** What a message of a session has as its `metadata`. */
export interface SignalboxMetadata {
  sessionId: string;
  /** The turn that the message belongs to; null for a message whose turn has not started. */
  turn: number | null;
  /** How far the message has been received. */
  cursor?: string;
  /** Once the turn has ended. */
  stopReason?: StopReason;
  usage?: Usage;
  /** The value of an agent with an `outputSchema`. */
  output?: unknown;
}

/** The URL of a file, for `<img src>` or a link. */
export type FileUrl = (file: FilePart) => string;

/** A part of the current step. */
interface Part {
  /** Where it began in the journal. */
  seq: number;
  /** What shows it, without `text-end`; text is in one `text-delta`. */
  shown: UIMessageChunk[];
  text?: Text;
  call?: Call;
}

interface Text {
  kind: 'text' | 'reasoning';
  id: string;
  text: string;
  /** Where each delta begins: in the journal, and in `text`. */
  deltas: { seq: number; at: number }[];
  isOpen: boolean;
}

interface Call {
  toolCallId: string;
  name: string;
  /** As JSON; undefined while the model writes it. */
  input?: string;
  approvalId?: string;
  /** Undefined until it is decided. */
  approved?: boolean;
  isDone: boolean;
  part: Part;
}

type FinishReason = NonNullable<Extract<UIMessageChunk, { type: 'finish' }>['finishReason']>;

// `interrupted` also keeps the AI SDK from continuing the message by itself (`sendAutomaticallyWhen`).
const finishReasons: Record<Exclude<StopReason, 'error'>, FinishReason> = {
  endTurn: 'stop',
  maxOutputTokens: 'length',
  refusal: 'content-filter',
  maxSteps: 'interrupted',
  budgetReached: 'interrupted',
  interrupted: 'interrupted',
  timedOut: 'interrupted',
};

export class TurnMessage {
  readonly #fileUrl: FileUrl;
  readonly #calls = new Map<string, Call>();
  #out: UIMessageChunk[] = [];
  /** Of the current step; undefined before the first one. */
  #parts: Part[] | undefined;
  /** The next content belongs to another step. */
  #stepEnded = false;
  #waitingFor: WaitingFor | null = null;
  #hasEnded = false;
  #end: { stopReason: StopReason; usage: Usage; output?: unknown; error?: SessionError } | undefined;
  #sessionEnded: string | undefined;

  constructor({ fileUrl }: { fileUrl: FileUrl }) {
    this.#fileUrl = fileUrl;
  }

  /** What the session still waits for. */
  get awaited(): Pick<WaitingFor, 'operationIds' | 'toolCallIds'> {
    const { operationIds = [], toolCallIds = [] } = this.#waitingFor ?? {};
    const decided = new Set(
      [...this.#calls.values()].map(({ approvalId, approved }) => approved !== undefined && approvalId),
    );
    return {
      operationIds: operationIds.filter((id) => !decided.has(id)),
      toolCallIds: toolCallIds.filter((id) => !this.#calls.get(id)?.isDone),
    };
  }

  /** The turn has ended. It continues if it failed and is retried. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** The chunks of the message for a chunk of the turn. */
  push(chunk: Chunk): UIMessageChunk[] {
    this.#out = [];
    switch (chunk.type) {
      case 'step.started':
        this.#hasEnded = false;
        if (this.#parts?.some(({ call }) => call)) this.#stepEnded = true;
        break;
      case 'message.chunk':
        this.#text('text', chunk.seq, chunk.delta);
        break;
      case 'reasoning.chunk':
        this.#text('reasoning', chunk.seq, chunk.delta);
        break;
      case 'tool.input.chunk':
        this.#inputChunk(chunk.seq, chunk.toolCallId, chunk.toolName, chunk.delta);
        break;
      case 'tool.call':
        this.#input(chunk.seq, chunk.toolCallId, chunk.tool, chunk.input);
        break;
      case 'approval.requested':
        this.#approvalRequested(chunk);
        break;
      case 'approval.resolved':
        this.#approvalResolved(chunk);
        break;
      case 'tool.result':
        this.#result(chunk);
        break;
      case 'file.created':
        this.#file(chunk.seq, chunk.file);
        break;
      case 'message.reset':
        this.#reset(chunk.fromSeq);
        break;
      case 'turn.completed':
        this.#hasEnded = true;
        this.#end = chunk;
        break;
      case 'session.status':
        this.#status(chunk);
        break;
      default:
      // Nothing that a message shows, or of a later version of the service.
    }
    return this.#out;
  }

  /** `tool-input-available` of the calls that the page has to run now. */
  callsForPage(toolCallIds: readonly string[]): UIMessageChunk[] {
    return toolCallIds.flatMap((toolCallId) => {
      const call = this.#calls.get(toolCallId);
      return call?.input === undefined || call.isDone ? [] : [{ ...available(call), providerExecuted: false }];
    });
  }

  /** The end of the stream: of the message, or of what is known of it until the page has answered. */
  finish(metadata: SignalboxMetadata | undefined): UIMessageChunk[] {
    this.#out = [];
    this.#closeText();
    if (this.#parts) this.#out.push({ type: 'finish-step' });
    const end = this.#hasEnded ? this.#end : undefined;
    if (end?.stopReason === 'error') {
      this.#out.push({ type: 'message-metadata', messageMetadata: { ...metadata, ...ofEnd(end) } });
      this.#out.push({ type: 'error', errorText: end.error?.message ?? 'The turn failed.' });
    } else if (end) {
      const finishReason = finishReasons[end.stopReason as Exclude<StopReason, 'error'>] ?? 'other';
      this.#out.push({ type: 'finish', finishReason, messageMetadata: { ...metadata, ...ofEnd(end) } });
    } else {
      const finishReason = this.#sessionEnded ? 'interrupted' : this.#waitingFor ? 'tool-calls' : 'other';
      this.#out.push({ type: 'finish', finishReason, ...(metadata && { messageMetadata: metadata }) });
    }
    return this.#out;
  }

  #status({ status, waitingFor }: Extract<Chunk, { type: 'session.status' }>): void {
    this.#waitingFor = status === 'waiting' ? waitingFor : null;
    this.#hasEnded = status !== 'waiting' && status !== 'running';
    if (status === 'completed' || status === 'failed' || status === 'cancelled') this.#sessionEnded = status;
  }

  /** Adds a part to the current step, or to the next one if that has ended. */
  #add(seq: number, shown: UIMessageChunk[]): Part {
    this.#closeText();
    if (this.#parts && this.#stepEnded) {
      this.#out.push({ type: 'finish-step' });
      this.#parts = undefined;
    }
    this.#stepEnded = false;
    if (!this.#parts) this.#out.push({ type: 'start-step' });
    const part: Part = { seq, shown };
    this.#parts ??= [];
    this.#parts.push(part);
    this.#out.push(...shown);
    return part;
  }

  #show(part: Part, chunk: UIMessageChunk): void {
    this.#closeText();
    part.shown.push(chunk);
    this.#out.push(chunk);
  }

  #text(kind: 'text' | 'reasoning', seq: number, delta: string): void {
    // Services before `step.started`: a response follows results in a new step.
    if (this.#parts?.some(({ call }) => call?.isDone)) this.#stepEnded = true;
    const last = this.#stepEnded ? undefined : this.#parts?.at(-1)?.text;
    let text = last?.isOpen && last.kind === kind ? last : undefined;
    if (!text) {
      text = { kind, id: `${kind}-${seq}`, text: '', deltas: [], isOpen: true };
      this.#add(seq, [{ type: `${kind}-start`, id: text.id }]).text = text;
    }
    text.deltas.push({ seq, at: text.text.length });
    text.text += delta;
    this.#out.push({ type: `${kind}-delta`, id: text.id, delta });
  }

  #closeText(): void {
    const text = this.#parts?.at(-1)?.text;
    if (!text?.isOpen) return;
    text.isOpen = false;
    this.#out.push({ type: `${text.kind}-end`, id: text.id });
  }

  #begin(seq: number, toolCallId: string, name: string, first: UIMessageChunk): Call {
    const part = this.#add(seq, [first]);
    const call: Call = { toolCallId, name, isDone: false, part };
    part.call = call;
    this.#calls.set(toolCallId, call);
    return call;
  }

  #inputChunk(seq: number, toolCallId: string, toolName: string, delta: string): void {
    let call = this.#calls.get(toolCallId);
    if (!call) {
      if (this.#parts?.some(({ call: other }) => other?.isDone)) this.#stepEnded = true;
      const first = { type: 'tool-input-start', toolCallId, toolName, providerExecuted: true } as const;
      call = this.#begin(seq, toolCallId, toolName, first);
    }
    if (call.input === undefined && !call.isDone) {
      this.#show(call.part, { type: 'tool-input-delta', toolCallId, inputTextDelta: delta });
    }
  }

  /** The call with its input; an approver can have changed it. */
  #input(seq: number, toolCallId: string, name: string, input: unknown): Call {
    const json = JSON.stringify(input) ?? 'null';
    const known = this.#calls.get(toolCallId);
    if (!known) {
      const chunk = available({ toolCallId, name, input: json });
      const call = this.#begin(seq, toolCallId, name, chunk);
      call.input = json;
      return call;
    }
    if (!known.isDone && known.input !== json) {
      known.input = json;
      this.#show(known.part, available(known));
    }
    return known;
  }

  #approvalRequested(chunk: Extract<Chunk, { type: 'approval.requested' }>): void {
    const { operationId, toolCallId, expiresAt, by } = chunk;
    const call = this.#input(chunk.seq, toolCallId, chunk.name, chunk.input);
    if (call.isDone || call.approvalId) return;
    call.approvalId = operationId;
    this.#show(call.part, {
      type: 'tool-approval-request',
      approvalId: operationId,
      toolCallId,
      approvalDescriptor: { expiresAt, ...(by && { by }) },
    });
  }

  #approvalResolved({
    operationId,
    toolCallId,
    decision,
    reason,
  }: Extract<Chunk, { type: 'approval.resolved' }>): void {
    const call = this.#calls.get(toolCallId);
    if (!call || call.isDone || call.approvalId !== operationId || call.approved !== undefined) return;
    call.approved = decision === 'approved';
    const why = reason ?? (decision === 'expired' || decision === 'cancelled' ? decision : undefined);
    this.#show(call.part, {
      type: 'tool-approval-response',
      approvalId: operationId,
      approved: call.approved,
      ...(why !== undefined && { reason: why }),
    });
  }

  #result(chunk: Extract<Chunk, { type: 'tool.result' }>): void {
    const { toolCallId, output, error } = chunk;
    let call = this.#calls.get(toolCallId);
    if (!call?.isDone && chunk.tool !== undefined) {
      call = this.#input(chunk.seq, toolCallId, chunk.tool, chunk.input ?? null);
    }
    if (!call || call.isDone) return;
    call.isDone = true;
    if (call.approved === false) {
      this.#show(call.part, { type: 'tool-output-denied', toolCallId });
    } else if (error === undefined) {
      this.#show(call.part, {
        type: 'tool-output-available',
        toolCallId,
        output: output ?? null,
        providerExecuted: true,
      });
    } else {
      this.#show(call.part, { type: 'tool-output-error', toolCallId, errorText: error, providerExecuted: true });
    }
  }

  #file(seq: number, file: FilePart): void {
    const { mediaType } = file;
    const url = this.#fileUrl(file);
    this.#add(seq, [{ type: 'file', url, mediaType, providerMetadata: metadataOfFile(file) }]);
  }

  #reset(fromSeq: number): void {
    const parts = this.#parts ?? [];
    // Only what the model has shown: a call that was requested stays.
    if (!parts.some(({ text, call, seq }) => (text?.deltas.at(-1)?.seq ?? (isWritten(call) ? 0 : seq)) >= fromSeq))
      return;
    this.#out.push({ type: 'reset-step' });
    this.#parts = parts.filter(({ seq, text, call, shown }) => {
      if (text) return this.#repeatText(text, shown, fromSeq);
      if (seq >= fromSeq && call && !isWritten(call)) return this.#calls.delete(call.toolCallId) && false;
      this.#out.push(...shown);
      return true;
    });
  }

  /** Returns false if all of it is void. */
  #repeatText(text: Text, shown: UIMessageChunk[], fromSeq: number): boolean {
    const end = text.deltas.findIndex(({ seq }) => seq >= fromSeq);
    if (end >= 0) {
      text.text = text.text.slice(0, text.deltas[end]!.at);
      text.deltas.length = end;
    }
    if (text.deltas.length === 0) return false;
    this.#out.push(...shown, { type: `${text.kind}-delta`, id: text.id, delta: text.text });
    if (!text.isOpen) this.#out.push({ type: `${text.kind}-end`, id: text.id });
    return true;
  }
}

/** The model has requested the call; before that, it was writing the input. */
function isWritten(call: Call | undefined): boolean {
  return call?.input !== undefined;
}

function available({ toolCallId, name, input }: Pick<Call, 'toolCallId' | 'name' | 'input'>) {
  return {
    type: 'tool-input-available',
    toolCallId,
    toolName: name,
    input: JSON.parse(input ?? 'null') as unknown,
    providerExecuted: true,
  } as const;
}

/** The `providerMetadata` of a part that is a file of the service. */
export function metadataOfFile({ fileId, filename, bytes }: FilePart) {
  return { signalbox: { fileId, bytes, ...(filename !== undefined && { filename }) } };
}

function ofEnd({ stopReason, usage, output }: { stopReason: StopReason; usage: Usage; output?: unknown }) {
  return { stopReason, usage, ...(output !== undefined && { output }) };
}
