/**
 * One turn of a session as one assistant message of the AI SDK: turns chunks of the journal into chunks of a UI message stream. What a
 * chunk means is decided by the reducer of conversations; this writes what differs between two states of the turn.
 *
 * - A **step** of the message holds a response and the tool calls that it requests. A response that continues the text of the
 *   previous one stays in its step, because the journal may later void both at once (`message.reset`).
 * - `message.reset` voids a part of the current step. The AI SDK can only void a whole one (`reset-step`), so the rest of the step
 *   is repeated.
 * - **Who acts**: `providerExecuted` is true while the service is responsible for a call, and false from the moment when the page
 *   has to run it. The AI SDK calls `onToolCall` exactly for those.
 *
 * It accepts any sequence of chunks and always writes a valid stream: what refers to something unknown is left out.
 */
import type { UIMessageChunk } from 'ai';
import { applyToTurn, hasResult, isBeingWritten, newTurn, type TurnState, toolOf } from '../conversation/turn.ts';
import type { AssistantPart, ReasoningPart, TextPart, ToolPart } from '../conversation/types.ts';
import type { Chunk, FilePart, Source, StopReason, Usage, WaitingFor } from '../types.generated.ts';

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
  #turn: TurnState = newTurn(0);
  #out: UIMessageChunk[] = [];
  /** Parts of the turn by their ids, and files, in the order in which they are shown in the current step; undefined before the first one. */
  #step: (string | FilePart)[] | undefined;
  /** The next part belongs to another step. */
  #stepEnded = false;
  /** The text that is being written: which part it is of, and its id in the stream. */
  #open: { partId: string; type: 'text' | 'reasoning'; id: string } | undefined;

  constructor({ fileUrl }: { fileUrl: FileUrl }) {
    this.#fileUrl = fileUrl;
  }

  /** What the session still waits for. */
  get awaited(): Pick<WaitingFor, 'operationIds' | 'toolCallIds'> {
    const { waitingFor, parts } = this.#turn;
    const { operationIds = [], toolCallIds = [] } = waitingFor ?? {};
    const decided = new Set<string>();
    for (const part of parts) {
      if (part.type === 'tool' && part.approval && part.approval.decision !== 'pending') {
        decided.add(part.approval.operationId);
      }
    }
    return {
      operationIds: operationIds.filter((id) => !decided.has(id)),
      toolCallIds: toolCallIds.filter((id) => !this.#hasResult(id)),
    };
  }

  /** The turn has ended. It continues if it failed and is retried. */
  get hasEnded(): boolean {
    return this.#turn.isOver;
  }

  /** The chunks of the message for a chunk of the turn. */
  push(chunk: Chunk): UIMessageChunk[] {
    this.#out = [];
    const before = this.#turn;
    const after = applyToTurn(before.turn === 0 ? newTurn(chunk.turn) : before, chunk);
    this.#turn = after;
    switch (chunk.type) {
      case 'step.started':
        if (this.#step?.some((one) => typeof one === 'string' && toolOf(after, one))) this.#stepEnded = true;
        break;
      case 'message.chunk':
      case 'reasoning.chunk':
        this.#text(before, after, chunk);
        this.#cite(before, after);
        break;
      case 'tool.input.chunk':
      case 'tool.call':
      case 'approval.requested':
      case 'approval.resolved':
      case 'tool.result':
        this.#call(before, after, chunk);
        break;
      case 'file.created':
        this.#add(chunk.file);
        this.#out.push(this.#shownFile(chunk.file));
        break;
      case 'message.reset':
        this.#reset(before, after);
        break;
      default:
      // Nothing that a message shows, or of a later version of the service.
    }
    return this.#out;
  }

  /** `tool-input-available` of the calls that the page has to run now. */
  callsForPage(toolCallIds: readonly string[]): UIMessageChunk[] {
    return toolCallIds.flatMap((toolCallId) => {
      const call = toolOf(this.#turn, toolCallId);
      return !call || isBeingWritten(call) || hasResult(call) ? [] : [{ ...available(call), providerExecuted: false }];
    });
  }

  /** The end of the stream: of the message, or of what is known of it until the page has answered. */
  finish(metadata: SignalboxMetadata | undefined): UIMessageChunk[] {
    this.#out = [];
    this.#closeText();
    if (this.#step) this.#out.push({ type: 'finish-step' });
    const { stopReason, usage, output, error, status, waitingFor } = this.#turn;
    const end = usage && stopReason && { stopReason, usage, ...(output !== undefined && { output }) };
    if (end?.stopReason === 'error') {
      this.#out.push({ type: 'message-metadata', messageMetadata: { ...metadata, ...end } });
      this.#out.push({ type: 'error', errorText: error?.message ?? 'The turn failed.' });
    } else if (end) {
      const finishReason = finishReasons[end.stopReason as Exclude<StopReason, 'error'>] ?? 'other';
      this.#out.push({ type: 'finish', finishReason, messageMetadata: { ...metadata, ...end } });
    } else {
      const hasSessionEnded = status === 'completed' || status === 'failed' || status === 'cancelled';
      const finishReason = hasSessionEnded ? 'interrupted' : waitingFor ? 'tool-calls' : 'other';
      this.#out.push({ type: 'finish', finishReason, ...(metadata && { messageMetadata: metadata }) });
    }
    return this.#out;
  }

  #hasResult(id: string): boolean {
    const call = toolOf(this.#turn, id);
    return call !== undefined && hasResult(call);
  }

  /** Begins a part of the current step, or of the next one if that has ended. */
  #add(part: string | FilePart): void {
    this.#closeText();
    if (this.#step && this.#stepEnded) {
      this.#out.push({ type: 'finish-step' });
      this.#step = undefined;
    }
    this.#stepEnded = false;
    if (!this.#step) this.#out.push({ type: 'start-step' });
    this.#step ??= [];
    this.#step.push(part);
  }

  /** Services before `step.started`: a response follows results in a new step. */
  #endStepAfterResults(): void {
    if (this.#step?.some((one) => typeof one === 'string' && this.#hasResult(one))) this.#stepEnded = true;
  }

  #text(before: TurnState, after: TurnState, { seq, delta }: { seq: number; delta: string }): void {
    const part = after.parts.at(-1);
    if (delta === '' || before.parts === after.parts || !part || part.type === 'tool') return;
    const { type } = part;
    if (!before.parts.some(({ id }) => id === part.id)) {
      this.#endStepAfterResults();
      this.#add(part.id);
    }
    if (this.#open?.partId !== part.id) {
      this.#closeText();
      this.#open = { partId: part.id, type, id: `${type}-${seq}` };
      this.#out.push({ type: `${type}-start`, id: this.#open.id });
    }
    this.#out.push({ type: `${type}-delta`, id: this.#open.id, delta });
  }

  #cite(before: TurnState, after: TurnState): void {
    for (const part of after.parts) {
      if (part.type !== 'text' || !part.sources || part === partOf(before, part.id)) continue;
      // A response with sources alone.
      if (!this.#step?.includes(part.id)) this.#add(part.id);
      this.#out.push(...shownSources(part));
    }
  }

  #closeText(): void {
    if (this.#open) this.#out.push({ type: `${this.#open.type}-end`, id: this.#open.id });
    this.#open = undefined;
  }

  #call(before: TurnState, after: TurnState, { type, toolCallId }: Chunk & { toolCallId: string }): void {
    const [known, call] = [toolOf(before, toolCallId), toolOf(after, toolCallId)];
    if (!call || known === call) return;
    if (!known) {
      if (type === 'tool.input.chunk') this.#endStepAfterResults();
      this.#add(toolCallId);
    }
    this.#closeText();
    this.#out.push(...shownOf(known, call));
  }

  #reset(before: TurnState, after: TurnState): void {
    const isVoid = (one: string | FilePart) =>
      typeof one === 'string' && lengthOf(before, one) !== lengthOf(after, one);
    if (!this.#step?.some(isVoid)) return;
    this.#out.push({ type: 'reset-step' });
    this.#step = this.#step.filter((one) => typeof one !== 'string' || partOf(after, one));
    const open = this.#open;
    this.#open = undefined;
    for (const one of this.#step) {
      const part = typeof one === 'string' ? partOf(after, one)! : one;
      if (part.type === 'file') this.#out.push(this.#shownFile(part));
      else if (part.type === 'tool') this.#out.push(...shownOf(undefined, part));
      else this.#repeat(part, open?.partId === part.id);
    }
  }

  #repeat(part: TextPart | ReasoningPart, isOpen: boolean): void {
    const { id: partId, type, text } = part;
    const id = `${type}-again-${partId}`;
    this.#open = { partId, type, id };
    this.#out.push({ type: `${type}-start`, id }, { type: `${type}-delta`, id, delta: text });
    if (!isOpen) this.#closeText();
    if (part.type === 'text') this.#out.push(...shownSources(part));
  }

  #shownFile(file: FilePart): UIMessageChunk {
    const { mediaType } = file;
    return { type: 'file', url: this.#fileUrl(file), mediaType, providerMetadata: metadataOfFile(file) };
  }
}

/** What shows a call as it is, to a page that knows it as it was before. */
function shownOf(before: ToolPart | undefined, call: ToolPart): UIMessageChunk[] {
  const { id: toolCallId, tool: toolName, approval, inputText, output, error } = call;
  const shown: UIMessageChunk[] = [];
  if (isBeingWritten(call)) {
    if (!before) shown.push({ type: 'tool-input-start', toolCallId, toolName, providerExecuted: true });
    const inputTextDelta = inputText!.slice(before?.inputText?.length ?? 0);
    if (inputTextDelta !== '') shown.push({ type: 'tool-input-delta', toolCallId, inputTextDelta });
  } else if (!before || isBeingWritten(before) || jsonOf(before.input) !== jsonOf(call.input)) {
    shown.push(available(call));
  }
  if (approval && !before?.approval) {
    const { operationId: approvalId, expiresAt, by } = approval;
    const approvalDescriptor = { expiresAt, ...(by && { by }) };
    shown.push({ type: 'tool-approval-request', approvalId, toolCallId, approvalDescriptor });
  }
  if (approval && approval.decision !== 'pending' && (before?.approval?.decision ?? 'pending') === 'pending') {
    const { operationId: approvalId, decision } = approval;
    const reason = approval.reason ?? (decision === 'expired' || decision === 'cancelled' ? decision : undefined);
    const approved = decision === 'approved';
    shown.push({ type: 'tool-approval-response', approvalId, approved, ...(reason !== undefined && { reason }) });
  }
  if (!hasResult(call) || (before && hasResult(before))) return shown;
  if (approval && approval.decision !== 'pending' && approval.decision !== 'approved') {
    shown.push({ type: 'tool-output-denied', toolCallId });
  } else if (error === null) {
    shown.push({ type: 'tool-output-available', toolCallId, output: output ?? null, providerExecuted: true });
  } else shown.push({ type: 'tool-output-error', toolCallId, errorText: error, providerExecuted: true });
  return shown;
}

function shownSources({ id, sources = [] }: TextPart) {
  return sources.map((source, index) => sourcePart(source, `source-${id}-${index}`));
}

/** A source as a part of a message, and as the chunk that adds it. */
export function sourcePart({ url, title, citedText }: Source, sourceId: string) {
  const more = citedText === undefined ? {} : { providerMetadata: { signalbox: { citedText } } };
  if (url !== undefined)
    return { type: 'source-url' as const, sourceId, url, ...(title !== undefined && { title }), ...more };
  const mediaType = 'application/octet-stream';
  return { type: 'source-document' as const, sourceId, mediaType, title: title ?? '', ...more };
}

function partOf({ parts }: TurnState, id: string): AssistantPart | undefined {
  return parts.find((part) => part.id === id);
}

function lengthOf(turn: TurnState, id: string): number | undefined {
  const part = partOf(turn, id);
  return part?.type === 'tool' ? (part.inputText?.length ?? 0) : part?.text.length;
}

function jsonOf(input: unknown): string {
  return JSON.stringify(input) ?? 'null';
}

function available({ id: toolCallId, tool: toolName, input }: ToolPart) {
  return {
    type: 'tool-input-available',
    toolCallId,
    toolName,
    input: JSON.parse(jsonOf(input)) as unknown,
    providerExecuted: true,
  } as const;
}

/** The `providerMetadata` of a part that is a file of the service. */
export function metadataOfFile({ fileId, filename, bytes }: FilePart) {
  return { signalbox: { fileId, bytes, ...(filename !== undefined && { filename }) } };
}
