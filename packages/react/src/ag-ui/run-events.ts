/**
 * One run of AG-UI over a session: turns chunks of the journal into events. What a chunk means is decided by the reducer of conversations.
 *
 * - A run follows turns up to where the client has to answer: it then ends with an interrupt for each approval, or leaves the calls
 *   of client tools open. The next run carries the answers.
 * - AG-UI can't take text back. After a `message.reset`, and after an approver has changed the input of a call, the messages as
 *   they are now follow in a `MESSAGES_SNAPSHOT`. For that, `messages` is kept as a client has it.
 *
 * It accepts any sequence of chunks and always writes a valid sequence of events.
 */
import {
  type AssistantMessage,
  type Event,
  EventType,
  type Message,
  type RunFinishedEvent,
  type ToolCall,
} from '@ag-ui/client';
import type { Chunk, Source, Usage } from '@signalbox/client';
import { applyToTurn, hasResult, newTurn, type ToolPart, type TurnState, toolOf } from '@signalbox/client/conversation';
import { interruptOf } from './interrupts.ts';
import { resultContent, resultMessageId, toolCall } from './messages.ts';
import { isSameJson } from './same-json.ts';

interface Call {
  shown: ToolCall;
  /** The ID of the assistant message that has the call. */
  messageId: string;
  /** The events of its input have not ended. */
  isOpen: boolean;
}

/** Text or reasoning that is being written. */
interface Open {
  kind: 'text' | 'reasoning';
  id: string;
}

export class RunEvents {
  /** As the client has them now. */
  readonly messages: Message[];
  #out: Event[] = [];
  /** The chunk is one that the client has: it changes what is known, and nothing is written. */
  #isReplay = false;
  #turn: TurnState = newTurn(0);
  #response: string | undefined;
  #step: string | undefined;
  #model: string | undefined;
  #open: Open | undefined;
  readonly #calls = new Map<string, Call>();
  /** The messages that show text of this turn, by the ids of its parts. */
  readonly #shownIn = new Map<string, string>();

  constructor(messages: readonly Message[]) {
    this.messages = structuredClone(messages) as Message[];
  }

  get hasEnded(): boolean {
    return this.#turn.isOver;
  }

  /** Approvals that are pending. */
  get approvals(): string[] {
    const pending = new Set(this.#pending.map(({ approval }) => approval?.operationId));
    return (this.#turn.waitingFor?.operationIds ?? []).filter((id) => pending.has(id));
  }

  /** Calls of client tools without a result. */
  get clientCalls(): string[] {
    return (this.#turn.waitingFor?.toolCallIds ?? []).filter((id) => this.#calls.has(id) && !isDone(this.#turn, id));
  }

  get #pending(): ToolPart[] {
    return this.#turn.parts.filter(
      (part): part is ToolPart => part.type === 'tool' && part.approval?.decision === 'pending' && !hasResult(part),
    );
  }

  push(chunk: Chunk, { isReplay = false } = {}): Event[] {
    this.#out = [];
    if (this.#isReplay && !isReplay) this.#close();
    this.#isReplay = isReplay;
    if (chunk.turn !== this.#turn.turn) this.#beginTurn(chunk.turn);
    const before = this.#turn;
    this.#turn = applyToTurn(before, chunk);
    switch (chunk.type) {
      case 'step.started':
        this.#startStep(chunk.step, chunk.model);
        break;
      case 'message.started':
        this.#close();
        this.#response = chunk.messageId;
        break;
      case 'message.chunk':
        // Services before `step.started`: what follows a result is another response.
        if ([...this.#calls].some(([id, call]) => isDone(before, id) && call.messageId === this.#response)) {
          this.#response = undefined;
        }
        this.#write('text', this.#responseId(chunk.seq), chunk);
        if (chunk.sources) this.#sources(this.#responseId(chunk.seq), chunk.sources);
        break;
      case 'reasoning.chunk':
        this.#write(
          'reasoning',
          this.#open?.kind === 'reasoning' ? this.#open.id : this.#idAt('reasoning', chunk.seq),
          chunk,
        );
        break;
      case 'tool.input.chunk':
        this.#writeInput(chunk);
        break;
      case 'approval.requested':
        if (!isDone(before, chunk.toolCallId)) this.#call(chunk.seq, chunk.toolCallId, chunk.name, chunk.input);
        this.#custom(chunk);
        break;
      case 'tool.call':
        if (!isDone(before, chunk.toolCallId)) this.#call(chunk.seq, chunk.toolCallId, chunk.tool, chunk.input);
        break;
      case 'tool.result':
        if (!isDone(before, chunk.toolCallId)) this.#result(chunk);
        break;
      case 'approval.resolved':
      case 'file.created':
      case 'context.compacted':
        this.#custom(chunk);
        break;
      case 'message.reset':
        this.#reset(before);
        break;
      default:
      // A chunk of a later version of the service.
    }
    return this.#out;
  }

  /** The last events of the run. `interrupts`: the approvals to ask for. `withUsage`: the run has all model calls of its turn. */
  finish(run: { threadId: string; runId: string }, { interrupts = this.approvals, withUsage = false } = {}): Event[] {
    this.#out = [];
    this.#close();
    this.#isReplay = false;
    this.#endStep();
    const { error, status } = this.#turn;
    const end = this.#end;
    if (end?.stopReason === 'error' || (!end && status === 'failed')) {
      const { code, message } = error ?? { code: 'session_failed', message: 'The session failed' };
      this.#out.push({ type: EventType.RUN_ERROR, message, code });
      return this.#out;
    }
    const usage = withUsage && end ? [this.#usage(end)] : undefined;
    this.#out.push({
      type: EventType.RUN_FINISHED,
      ...run,
      ...this.#outcome(interrupts),
      ...(usage && { usage }),
    });
    return this.#out;
  }

  /** How the turn was completed. */
  get #end() {
    const { stopReason, usage, output } = this.#turn;
    return stopReason && usage && { stopReason, usage, output };
  }

  #outcome(approvals: readonly string[]): Pick<RunFinishedEvent, 'outcome' | 'result'> {
    const interrupts = this.#pending
      .filter(({ approval }) => approvals.includes(approval!.operationId))
      .map(interruptOf);
    if (interrupts.length > 0) return { outcome: { type: 'interrupt', interrupts } };
    const end = this.#end;
    if (end?.stopReason === 'interrupted' || (!end && this.#turn.status === 'cancelled')) {
      return { outcome: { type: 'cancelled' } };
    }
    const pendingToolCallIds = this.clientCalls;
    const outcome = { type: 'success' as const, ...(pendingToolCallIds.length > 0 && { pendingToolCallIds }) };
    if (!end) return { outcome };
    const { stopReason, output } = end;
    return { outcome, result: { stopReason, ...(output !== undefined && { output }) } };
  }

  #usage({ usage }: { usage: Usage }) {
    const [provider, ...model] = (this.#model ?? '').split('/');
    return {
      ...(provider && { provider, model: model.join('/') }),
      inputTokens: usage.inputTokens,
      outputTokens: usage.outputTokens,
      totalTokens: usage.inputTokens + usage.outputTokens,
      cachedInputTokens: usage.cachedTokens,
    };
  }

  #beginTurn(turn: number): void {
    this.#close();
    this.#endStep();
    this.#turn = newTurn(turn);
    this.#response = undefined;
    this.#shownIn.clear();
  }

  #emit(event: Event): void {
    if (!this.#isReplay) this.#out.push(event);
  }

  #startStep(step: number, model: string): void {
    this.#close();
    this.#endStep();
    this.#model = model;
    this.#response = undefined;
    if (this.#isReplay) return;
    this.#step = `step_${step}`;
    this.#emit({ type: EventType.STEP_STARTED, stepName: this.#step });
  }

  #endStep(): void {
    if (this.#step === undefined) return;
    this.#out.push({ type: EventType.STEP_FINISHED, stepName: this.#step });
    this.#step = undefined;
  }

  /** Ends what is being written: of text and reasoning there is one at a time, of calls there may be several. */
  #close(): void {
    if (this.#open) {
      const { kind, id } = this.#open;
      this.#open = undefined;
      if (kind === 'text') this.#emit({ type: EventType.TEXT_MESSAGE_END, messageId: id });
      else {
        this.#emit({ type: EventType.REASONING_MESSAGE_END, messageId: id });
        this.#emit({ type: EventType.REASONING_END, messageId: id });
      }
    }
    for (const call of this.#calls.values()) this.#closeInput(call);
  }

  #closeInput(call: Call): void {
    if (!call.isOpen) return;
    call.isOpen = false;
    this.#emit({ type: EventType.TOOL_CALL_END, toolCallId: call.shown.id });
  }

  #idAt(kind: string, seq: number): string {
    return `${kind}_${this.#turn.turn}_${seq}`;
  }

  /** The assistant message of the response; services before `message.started` do not name it. */
  #responseId(seq: number): string {
    this.#response ??= this.#idAt('message', seq);
    return this.#response;
  }

  #write(kind: Open['kind'], id: string, { delta }: { delta: string }): void {
    const part = this.#turn.parts.at(-1);
    if (delta === '' || !part) return;
    this.#shownIn.set(part.id, id);
    if (this.#open?.id !== id) {
      this.#close();
      this.#open = { kind, id };
      if (kind === 'text') this.#emit({ type: EventType.TEXT_MESSAGE_START, messageId: id, role: 'assistant' });
      else {
        this.#emit({ type: EventType.REASONING_START, messageId: id });
        this.#emit({ type: EventType.REASONING_MESSAGE_START, messageId: id, role: 'reasoning' });
      }
    }
    if (kind === 'text') this.#emit({ type: EventType.TEXT_MESSAGE_CONTENT, messageId: id, delta });
    else this.#emit({ type: EventType.REASONING_MESSAGE_CONTENT, messageId: id, delta });
    if (this.#isReplay) return;
    const message = this.#messageOf(id, kind);
    message.content = (message.content ?? '') + delta;
  }

  #messageOf(id: string, kind: Open['kind']): { content?: string } {
    const known = this.messages.find((message) => message.id === id);
    if (known) return known as AssistantMessage;
    const message: Message = kind === 'text' ? { id, role: 'assistant' } : { id, role: 'reasoning', content: '' };
    this.messages.push(message);
    return message as AssistantMessage;
  }

  #startCall(seq: number, toolCallId: string, name: string): Call {
    const messageId = this.#responseId(seq);
    const shown: ToolCall = { id: toolCallId, type: 'function', function: { name, arguments: '' } };
    const call: Call = { shown, messageId, isOpen: true };
    this.#calls.set(toolCallId, call);
    const start = {
      type: EventType.TOOL_CALL_START,
      toolCallId,
      toolCallName: name,
      parentMessageId: messageId,
    } as const;
    this.#emit(start);
    if (!this.#isReplay) {
      const message = this.#messageOf(messageId, 'text') as AssistantMessage;
      message.toolCalls = [...(message.toolCalls ?? []), shown];
    }
    return call;
  }

  #writeInput({ seq, toolCallId, toolName, delta }: Extract<Chunk, { type: 'tool.input.chunk' }>): void {
    if (this.#open) this.#close();
    const call = this.#calls.get(toolCallId) ?? this.#startCall(seq, toolCallId, toolName);
    if (!call.isOpen || delta === '') return;
    call.shown.function.arguments += delta;
    this.#emit({ type: EventType.TOOL_CALL_ARGS, toolCallId, delta });
  }

  /** The call with its input. */
  #call(seq: number, toolCallId: string, name: string, input: unknown): void {
    if (this.#open) this.#close();
    const call = this.#calls.get(toolCallId) ?? this.#startCall(seq, toolCallId, name);
    const json = toolCall(toolCallId, name, input).function.arguments;
    if (call.isOpen && call.shown.function.arguments === '') {
      call.shown.function.arguments = json;
      this.#emit({ type: EventType.TOOL_CALL_ARGS, toolCallId, delta: json });
    }
    this.#closeInput(call);
    if (isSameJson(call.shown.function.arguments, input)) return;
    // An approver has changed it.
    call.shown.function.arguments = json;
    const message = this.messages.find(({ id }) => id === call.messageId) as AssistantMessage | undefined;
    const shown = message?.toolCalls?.find(({ id }) => id === toolCallId);
    if (shown) shown.function.arguments = json;
    this.#snapshot();
  }

  #result(chunk: Extract<Chunk, { type: 'tool.result' }>): void {
    const { toolCallId, error } = chunk;
    if (chunk.tool !== undefined) this.#call(chunk.seq, toolCallId, chunk.tool, chunk.input);
    const call = this.#calls.get(toolCallId);
    if (!call) return;
    this.#close();
    const messageId = resultMessageId(toolCallId);
    const content = resultContent(chunk);
    // A client that ran the call has the result.
    const isKnown = this.messages.some((message) => message.role === 'tool' && message.toolCallId === toolCallId);
    if (this.#isReplay || isKnown) return;
    const metadata = error === undefined ? {} : { metadata: { error } };
    this.#emit({ type: EventType.TOOL_CALL_RESULT, messageId, toolCallId, content, role: 'tool', ...metadata });
    let at = this.messages.findIndex(({ id }) => id === call.messageId) + 1;
    while (this.messages[at]?.role === 'tool') at += 1;
    this.messages.splice(at, 0, { id: messageId, role: 'tool', toolCallId, content, ...metadata });
  }

  #reset(before: TurnState): void {
    this.#close();
    this.#response = undefined;
    let isVoid = false;
    // The last part first: what is void is at the end of its message.
    for (const part of before.parts.toReversed()) {
      const left = this.#turn.parts.find(({ id }) => id === part.id);
      if (part.type !== 'tool') {
        const length = part.text.length - (left && left.type !== 'tool' ? left.text.length : 0);
        if (length > 0 && !this.#isReplay) this.#shorten(this.#shownIn.get(part.id), length);
        isVoid ||= length > 0;
      } else if (!left) {
        this.#dropCall(part.id);
        isVoid = true;
      }
    }
    if (isVoid) this.#snapshot();
  }

  #shorten(id: string | undefined, length: number): void {
    const message = this.messages.find((known) => known.id === id) as { content?: string } | undefined;
    if (message?.content) message.content = message.content.slice(0, -length);
  }

  /** A call whose input was being written disappears; one that was requested stays. */
  #dropCall(toolCallId: string): void {
    const { messageId } = this.#calls.get(toolCallId) ?? {};
    this.#calls.delete(toolCallId);
    const message = this.messages.find(({ id }) => id === messageId) as AssistantMessage | undefined;
    if (message?.toolCalls) message.toolCalls = message.toolCalls.filter(({ id }) => id !== toolCallId);
  }

  #snapshot(): void {
    if (this.#isReplay) return;
    // Void reasoning stays as an empty message: a client keeps reasoning that a snapshot leaves out.
    const messages = this.messages.filter((message) => {
      return message.role !== 'assistant' || message.content || message.toolCalls?.length;
    });
    this.messages.splice(0, this.messages.length, ...messages);
    this.#emit({ type: EventType.MESSAGES_SNAPSHOT, messages: structuredClone(messages) });
  }

  /** What the text of a message cites: AG-UI has no event for it. */
  #sources(messageId: string, sources: readonly Source[]): void {
    this.#emit({ type: EventType.CUSTOM, name: 'signalbox.message.sources', value: { messageId, sources } });
  }

  /** What AG-UI has no event for, as it is in the journal. */
  #custom(chunk: Chunk): void {
    this.#emit({ type: EventType.CUSTOM, name: `signalbox.${chunk.type}`, value: chunk });
  }
}

function isDone(turn: TurnState, toolCallId: string): boolean {
  const call = toolOf(turn, toolCallId);
  return call !== undefined && hasResult(call);
}
