/**
 * One run of AG-UI over a session: turns chunks of the journal into events.
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
import type { Chunk, WaitingFor } from '@signalbox/client';
import { interruptOf } from './interrupts.ts';
import { resultContent, resultMessageId, toolCall } from './messages.ts';
import { isSameJson } from './same-json.ts';

interface Call {
  shown: ToolCall;
  /** Of the assistant message that has the call. */
  messageId: string;
  /** Where the model began to write it. */
  seq: number;
  /** The events of its input have not ended. */
  isOpen: boolean;
  /** The model has requested it; before that, it was writing the input. */
  isRequested: boolean;
  approval?: Extract<Chunk, { type: 'approval.requested' }>;
  isDone: boolean;
}

/** Text or reasoning that is being written. */
interface Open {
  kind: 'text' | 'reasoning';
  id: string;
}

type Completed = Extract<Chunk, { type: 'turn.completed' }>;

export class RunEvents {
  /** As the client has them now. */
  readonly messages: Message[];
  #out: Event[] = [];
  /** The chunk is one that the client has: it changes what is known, and nothing is written. */
  #isReplay = false;
  #turn = 0;
  #response: string | undefined;
  #step: string | undefined;
  #model: string | undefined;
  #open: Open | undefined;
  readonly #calls = new Map<string, Call>();
  /** Of this turn: what was added to which message, and where in the journal. */
  #added: { seq: number; id: string; length: number }[] = [];
  #waitingFor: WaitingFor | null = null;
  #end: Completed | undefined;
  #hasEnded = false;
  #sessionEnded: 'completed' | 'failed' | 'cancelled' | undefined;

  constructor(messages: readonly Message[]) {
    this.messages = structuredClone(messages) as Message[];
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Approvals that are pending. */
  get approvals(): string[] {
    const pending = new Set([...this.#calls.values()].map(({ approval }) => approval?.operationId));
    return (this.#waitingFor?.operationIds ?? []).filter((id) => pending.has(id));
  }

  /** Calls of client tools without a result. */
  get clientCalls(): string[] {
    return (this.#waitingFor?.toolCallIds ?? []).filter((id) => this.#calls.has(id) && !this.#calls.get(id)!.isDone);
  }

  push(chunk: Chunk, { isReplay = false } = {}): Event[] {
    this.#out = [];
    if (this.#isReplay && !isReplay) this.#close();
    this.#isReplay = isReplay;
    if (chunk.turn !== this.#turn) this.#beginTurn(chunk.turn);
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
        if ([...this.#calls.values()].some((call) => call.isDone && call.messageId === this.#response)) {
          this.#response = undefined;
        }
        this.#write('text', this.#responseId(chunk.seq), chunk);
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
        this.#call(chunk.seq, chunk.toolCallId, chunk.name, chunk.input).approval = chunk;
        this.#custom(chunk);
        break;
      case 'tool.call':
        this.#call(chunk.seq, chunk.toolCallId, chunk.tool, chunk.input);
        break;
      case 'tool.result':
        this.#result(chunk);
        break;
      case 'approval.resolved': {
        const call = this.#calls.get(chunk.toolCallId);
        if (call) delete call.approval;
        this.#custom(chunk);
        break;
      }
      case 'file.created':
      case 'context.compacted':
        this.#custom(chunk);
        break;
      case 'message.reset':
        this.#reset(chunk.fromSeq);
        break;
      case 'turn.completed':
        this.#hasEnded = true;
        this.#end = chunk;
        break;
      case 'session.status':
        this.#waitingFor = chunk.status === 'waiting' ? chunk.waitingFor : null;
        this.#hasEnded = chunk.status !== 'waiting' && chunk.status !== 'running';
        if (chunk.status === 'completed' || chunk.status === 'failed' || chunk.status === 'cancelled') {
          this.#sessionEnded = chunk.status;
        }
        break;
      default:
      // Of a later version of the service.
    }
    return this.#out;
  }

  /** The last events of the run. `interrupts`: the approvals to ask for. `withUsage`: the run has all model calls of its turn. */
  finish(run: { threadId: string; runId: string }, { interrupts = this.approvals, withUsage = false } = {}): Event[] {
    this.#out = [];
    this.#close();
    this.#isReplay = false;
    this.#endStep();
    const end = this.#hasEnded ? this.#end : undefined;
    if (end?.stopReason === 'error' || (!end && this.#sessionEnded === 'failed')) {
      const { code, message } = end?.error ?? { code: 'session_failed', message: 'The session failed' };
      this.#out.push({ type: EventType.RUN_ERROR, message, code });
      return this.#out;
    }
    const usage = withUsage && end ? [this.#usage(end)] : undefined;
    this.#out.push({
      type: EventType.RUN_FINISHED,
      ...run,
      ...this.#outcome(end, interrupts),
      ...(usage && { usage }),
    });
    return this.#out;
  }

  #outcome(end: Completed | undefined, approvals: readonly string[]): Pick<RunFinishedEvent, 'outcome' | 'result'> {
    const pending = [...this.#calls.values()].flatMap(({ approval }) => approval ?? []);
    const interrupts = pending.filter(({ operationId }) => approvals.includes(operationId)).map(interruptOf);
    if (interrupts.length > 0) return { outcome: { type: 'interrupt', interrupts } };
    if (end?.stopReason === 'interrupted' || (!end && this.#sessionEnded === 'cancelled')) {
      return { outcome: { type: 'cancelled' } };
    }
    const pendingToolCallIds = this.clientCalls;
    const outcome = { type: 'success' as const, ...(pendingToolCallIds.length > 0 && { pendingToolCallIds }) };
    if (!end) return { outcome };
    const { stopReason, output } = end;
    return { outcome, result: { stopReason, ...(output !== undefined && { output }) } };
  }

  #usage({ usage }: Completed) {
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
    this.#turn = turn;
    this.#response = undefined;
    this.#added = [];
    this.#end = undefined;
    this.#hasEnded = false;
  }

  #emit(event: Event): void {
    if (!this.#isReplay) this.#out.push(event);
  }

  #startStep(step: number, model: string): void {
    this.#close();
    this.#endStep();
    this.#hasEnded = false;
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
    return `${kind}_${this.#turn}_${seq}`;
  }

  /** The assistant message of the response; services before `message.started` do not name it. */
  #responseId(seq: number): string {
    this.#response ??= this.#idAt('message', seq);
    return this.#response;
  }

  #write(kind: Open['kind'], id: string, { seq, delta }: { seq: number; delta: string }): void {
    if (delta === '') return;
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
    this.#added.push({ seq, id, length: delta.length });
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
    const call: Call = { shown, messageId, seq, isOpen: true, isRequested: false, isDone: false };
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
  #call(seq: number, toolCallId: string, name: string, input: unknown): Call {
    if (this.#open) this.#close();
    const known = this.#calls.get(toolCallId);
    if (known?.isDone) return known;
    const call = known ?? this.#startCall(seq, toolCallId, name);
    call.isRequested = true;
    const json = toolCall(toolCallId, name, input).function.arguments;
    if (call.isOpen && call.shown.function.arguments === '') {
      call.shown.function.arguments = json;
      this.#emit({ type: EventType.TOOL_CALL_ARGS, toolCallId, delta: json });
    }
    this.#closeInput(call);
    if (isSameJson(call.shown.function.arguments, input)) return call;
    // An approver has changed it.
    call.shown.function.arguments = json;
    const message = this.messages.find(({ id }) => id === call.messageId) as AssistantMessage | undefined;
    const shown = message?.toolCalls?.find(({ id }) => id === toolCallId);
    if (shown) shown.function.arguments = json;
    this.#snapshot();
    return call;
  }

  #result(chunk: Extract<Chunk, { type: 'tool.result' }>): void {
    const { toolCallId, error } = chunk;
    if (chunk.tool !== undefined && !this.#calls.get(toolCallId)?.isDone) {
      this.#call(chunk.seq, toolCallId, chunk.tool, chunk.input);
    }
    const call = this.#calls.get(toolCallId);
    if (!call || call.isDone) return;
    this.#close();
    call.isDone = true;
    delete call.approval;
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

  #reset(fromSeq: number): void {
    this.#close();
    const voided = this.#added.filter(({ seq }) => seq >= fromSeq);
    this.#added = this.#added.filter(({ seq }) => seq < fromSeq);
    for (const { id, length } of voided.toReversed()) {
      const message = this.messages.find((known) => known.id === id) as { content?: string } | undefined;
      if (message?.content) message.content = message.content.slice(0, -length);
    }
    // A call that was requested stays; one whose input was being written disappears.
    const written = [...this.#calls.values()].filter(({ seq, isRequested }) => seq >= fromSeq && !isRequested);
    for (const { shown, messageId } of written) {
      this.#calls.delete(shown.id);
      const message = this.messages.find(({ id }) => id === messageId) as AssistantMessage | undefined;
      if (message?.toolCalls) message.toolCalls = message.toolCalls.filter(({ id }) => id !== shown.id);
    }
    this.#response = undefined;
    if (voided.length + written.length > 0) this.#snapshot();
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

  /** What AG-UI has no event for, as it is in the journal. */
  #custom(chunk: Chunk): void {
    this.#emit({ type: EventType.CUSTOM, name: `signalbox.${chunk.type}`, value: chunk });
  }
}
