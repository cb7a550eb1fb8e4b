/**
 * What a turn shows, from its chunks. Pure: the same chunks give the same turn, in whatever pieces they are read.
 *
 * A turn that is read again from any earlier chunk does not change, because each chunk has a position and is applied once.
 */
import type {
  Chunk,
  Decision,
  SessionError,
  SessionStatus,
  StopReason,
  Usage,
  WaitingFor,
} from '../types.generated.ts';
import type { AssistantPart, ReasoningPart, TextPart, ToolPart, ToolState } from './types.ts';

export interface TurnState {
  readonly turn: number;
  /** The number of the last chunk. */
  readonly seq: number;
  readonly parts: readonly AssistantPart[];
  /** The next text is of another response, so it does not continue the last one. */
  readonly isNewResponse: boolean;
  /** The turn has ended. A retry continues it. */
  readonly isOver: boolean;
  readonly stopReason: StopReason | null;
  readonly error: SessionError | null;
  /** null until the turn is completed. */
  readonly usage: Usage | null;
  /** The value of an agent with an `outputSchema`, once the turn is completed. */
  readonly output: unknown;
  /** The last status of the session in this turn. */
  readonly status: SessionStatus | null;
  readonly waitingFor: WaitingFor | null;
  /** The last piece of text or input that was added; each names the one before it, so that `message.reset` can drop them. */
  readonly lastPiece: Piece | null;
}

/** Where a delta was added. */
interface Piece {
  readonly seq: number;
  /** The ID of the part. */
  readonly id: string;
  /** How long the part was before. */
  readonly start: number;
  readonly before: Piece | null;
}

const ends: ReadonlySet<ToolState> = new Set(['done', 'failed', 'denied', 'unknown']);

/** Whether a tool call will not change any more. */
export function isOver({ state }: Pick<ToolPart, 'state'>): boolean {
  return ends.has(state);
}

/** Fields of a turn that has not ended. */
const unended = { isOver: false, stopReason: null, error: null, usage: null, output: undefined } as const;

export function newTurn(turn: number): TurnState {
  return { turn, seq: 0, parts: [], isNewResponse: false, ...unended, status: null, waitingFor: null, lastPiece: null };
}

/** The turn after this chunk; the same object if it was applied before. Chunks of unknown types only advance `seq`. */
export function applyToTurn(turn: TurnState, chunk: Chunk): TurnState {
  if (chunk.seq <= turn.seq) return turn;
  return { ...change(turn, chunk), seq: chunk.seq };
}

function change(turn: TurnState, chunk: Chunk): TurnState {
  switch (chunk.type) {
    case 'message.chunk':
      return cite(addText(turn, 'text', chunk.delta, chunk.seq), chunk);
    case 'reasoning.chunk':
      return addText(turn, 'reasoning', chunk.delta, chunk.seq);
    case 'step.started':
      return { ...withText(turn, false), ...unended, isNewResponse: true };
    case 'message.started':
      return { ...withText(turn, false), isNewResponse: true };
    case 'tool.input.chunk':
      return addInput(turn, chunk);
    case 'message.reset':
      return dropFrom(turn, chunk.fromSeq);
    case 'approval.requested':
      return ask(turn, chunk);
    case 'approval.decided': {
      const { toolCallId, progress } = chunk;
      const approval = toolOf(turn, toolCallId)?.approval;
      return approval ? withTool(turn, toolCallId, { approval: { ...approval, progress } }) : turn;
    }
    case 'approval.resolved':
      return resolve(turn, chunk);
    case 'tool.call':
      return call(turn, chunk);
    case 'file.created': {
      const known = toolOf(turn, chunk.toolCallId);
      return known ? withTool(turn, known.id, { files: [...known.files, chunk.file] }) : turn;
    }
    case 'tool.result':
      return finishCall(turn, chunk);
    case 'session.status':
      return withStatus(turn, chunk);
    case 'turn.completed':
      return { ...end(turn, chunk.stopReason, chunk.error), usage: chunk.usage, output: chunk.output };
    default:
      return turn;
  }
}

function addText(turn: TurnState, type: 'text' | 'reasoning', delta: string, seq: number): TurnState {
  if (delta === '') return turn;
  const last = turn.parts.at(-1);
  if (last?.type === type && !turn.isNewResponse) {
    const longer: TextPart | ReasoningPart = { ...last, text: last.text + delta, isStreaming: true };
    return pieceAdded({ ...turn, parts: turn.parts.with(-1, longer) }, seq, last.id, last.text.length);
  }
  const id = `${type}_${turn.parts.filter((part) => part.type === type).length}`;
  const parts = [...withText(turn, false).parts, { type, id, text: delta, isStreaming: true }];
  return pieceAdded({ ...turn, parts, isNewResponse: false }, seq, id, 0);
}

/** The sources of a response come when it is complete, and belong to all its text. */
function cite(turn: TurnState, { sources = [], seq }: Chunk & { type: 'message.chunk' }): TurnState {
  if (sources.length === 0) return turn;
  const at = turn.isNewResponse ? -1 : turn.parts.findLastIndex(({ type }) => type === 'text');
  const known = turn.parts[at];
  if (known?.type !== 'text') {
    const id = `text_${turn.parts.filter(({ type }) => type === 'text').length}`;
    const part: TextPart = { type: 'text', id, text: '', isStreaming: false, sources };
    return pieceAdded({ ...turn, parts: [...withText(turn, false).parts, part], isNewResponse: false }, seq, id, 0);
  }
  return pieceAdded({ ...turn, parts: turn.parts.with(at, { ...known, sources }) }, seq, known.id, known.text.length);
}

function addInput(turn: TurnState, { toolCallId, toolName, delta, seq }: Chunk & { type: 'tool.input.chunk' }) {
  const known = toolOf(turn, toolCallId);
  if (known && !isBeingWritten(known)) return turn;
  const inputText = known?.inputText ?? '';
  const longer = withTool(turn, toolCallId, { tool: toolName, state: 'input', inputText: inputText + delta });
  return pieceAdded(longer, seq, toolCallId, inputText.length);
}

function pieceAdded(turn: TurnState, seq: number, id: string, start: number): TurnState {
  return { ...turn, lastPiece: { seq, id, start, before: turn.lastPiece } };
}

/** Drops the text and the unfinished inputs from this position on. */
function dropFrom(turn: TurnState, fromSeq: number): TurnState {
  const kept = new Map<string, number>();
  let lastPiece = turn.lastPiece;
  for (; lastPiece !== null && lastPiece.seq >= fromSeq; lastPiece = lastPiece.before) {
    kept.set(lastPiece.id, lastPiece.start);
  }
  const parts = turn.parts.flatMap((part): AssistantPart[] => {
    const length = kept.get(part.id);
    if (length === undefined) return [part];
    if (part.type === 'reasoning') return length === 0 ? [] : [{ ...part, text: part.text.slice(0, length) }];
    if (part.type === 'text') {
      const { sources: _, ...text } = part;
      return length === 0 ? [] : [{ ...text, text: part.text.slice(0, length) }];
    }
    if (!isBeingWritten(part)) return [part];
    return length === 0 ? [] : [{ ...part, inputText: part.inputText!.slice(0, length) }];
  });
  return withText({ ...turn, parts, lastPiece, isNewResponse: false }, false);
}

/** The first request counts. */
function ask(turn: TurnState, chunk: Chunk & { type: 'approval.requested' }): TurnState {
  const { operationId, toolCallId, name, input, expiresAt, by = null } = chunk;
  const known = toolOf(turn, toolCallId);
  if (known && (known.approval || hasResult(known))) return turn;
  const approval = { operationId, decision: 'pending', reason: null, expiresAt, by, progress: null } as const;
  return withTool(turn, toolCallId, { tool: name, input, inputText: null, state: 'approval', approval });
}

/** The first decision counts. */
function resolve(turn: TurnState, chunk: Chunk & { type: 'approval.resolved' }): TurnState {
  const { toolCallId, decision, reason = null } = chunk;
  const part = toolOf(turn, toolCallId);
  if (part?.approval?.decision !== 'pending' || hasResult(part)) return turn;
  const state = decision === 'approved' ? 'running' : 'denied';
  return withTool(turn, toolCallId, { state, approval: { ...part.approval, decision, reason } });
}

function call(turn: TurnState, chunk: Chunk & { type: 'tool.call' }): TurnState {
  const { toolCallId, tool, input, by, notRun = false } = chunk;
  const known = toolOf(turn, toolCallId);
  if (known && hasResult(known)) return turn;
  const isEdited = known?.approval != null && JSON.stringify(known.input) !== JSON.stringify(input);
  return withTool(turn, toolCallId, {
    tool,
    input,
    inputText: null,
    state: notRun ? 'failed' : 'running',
    isStarted: !notRun,
    ...(by && { by }),
    ...(isEdited && { isEdited, modelInput: known.input }),
  });
}

/** The first result counts. It names its tool if the call did not run and was not shown. */
function finishCall(turn: TurnState, chunk: Chunk & { type: 'tool.result' }): TurnState {
  const { toolCallId, tool, input, by, error = null } = chunk;
  const known = toolOf(turn, toolCallId);
  if (known ? hasResult(known) : tool === undefined) return turn;
  const output = error === null ? (chunk.output ?? null) : chunk.output;
  const named = tool === undefined ? {} : { tool, input, inputText: null, ...(by && { by, isStarted: true }) };
  const state = stateOfResult(chunk, known?.approval?.decision);
  return withTool(turn, toolCallId, { ...named, state, output, error });
}

/** The model has not requested the call yet. */
export function isBeingWritten(call: ToolPart): boolean {
  return call.inputText !== null && !hasResult(call);
}

/** Whether the result of a call has come. Without it, a call can have ended with its turn. */
export function hasResult({ output, error }: ToolPart): boolean {
  return output !== undefined || error !== null;
}

function withStatus(before: TurnState, chunk: Chunk & { type: 'session.status' }): TurnState {
  const { status } = chunk;
  const waitingFor = status === 'waiting' ? chunk.waitingFor : null;
  const turn = { ...before, status, waitingFor };
  if (status !== 'running' && status !== 'waiting') return end(turn, chunk.stopReason, chunk.error);
  const resumed = { ...turn, ...unended };
  return status === 'running' ? resumed : awaitResults(withText(resumed, false), waitingFor);
}

function stateOfResult(
  { outcomeUnknown, error, notRun }: Chunk & { type: 'tool.result' },
  decision: Decision | 'pending' | undefined,
): ToolState {
  if (outcomeUnknown) return 'unknown';
  if (error === undefined) return 'done';
  return notRun && decision !== undefined && decision !== 'approved' ? 'denied' : 'failed';
}

/** A client runs the calls in progress that the session waits for. */
function awaitResults(turn: TurnState, waitingFor: WaitingFor | null): TurnState {
  const awaited = new Set(waitingFor?.toolCallIds);
  const isAwaited = (part: AssistantPart) => part.type === 'tool' && part.state === 'running' && awaited.has(part.id);
  return withParts(turn, (part) => (isAwaited(part) ? { ...(part as ToolPart), state: 'result' } : part));
}

/** Nothing is in progress after the end, also if it came without a result of each call. */
function end(turn: TurnState, stopReason: StopReason | undefined, error: SessionError | undefined): TurnState {
  const ended = withParts(withText(turn, false), (part) => {
    if (part.type !== 'tool' || isOver(part)) return part;
    const { state, approval } = part;
    if (state === 'running') return { ...part, state: 'unknown' };
    return {
      ...part,
      state: 'denied',
      approval: approval && (approval.decision === 'pending' ? { ...approval, decision: 'cancelled' } : approval),
    };
  });
  return {
    ...ended,
    isOver: true,
    stopReason: stopReason ?? turn.stopReason,
    error: error ?? turn.error,
  };
}

export function toolOf(turn: TurnState, id: string): ToolPart | undefined {
  return turn.parts.find((part): part is ToolPart => part.type === 'tool' && part.id === id);
}

/** Changes a call, or adds it. */
function withTool(turn: TurnState, id: string, changes: Partial<ToolPart>): TurnState {
  if (toolOf(turn, id)) {
    return withParts(turn, (part) => (part.id === id && part.type === 'tool' ? { ...part, ...changes } : part));
  }
  const parts = [...withText(turn, false).parts];
  // Calls of a step appear as they start, or ask for approval; their ids sort as the model has written them.
  const after = parts.findLastIndex((part) => part.type !== 'tool' || part.id < id);
  parts.splice(after + 1, 0, { ...newTool(id), ...changes });
  return { ...turn, parts };
}

export function newTool(id: string): ToolPart {
  return {
    type: 'tool',
    id,
    tool: '',
    state: 'input',
    input: undefined,
    inputText: null,
    isEdited: false,
    modelInput: undefined,
    isStarted: false,
    approval: null,
    output: undefined,
    error: null,
    files: [],
  };
}

/** Says of all text whether more of it may follow. */
function withText(turn: TurnState, isStreaming: boolean): TurnState {
  return withParts(turn, (part) =>
    part.type === 'tool' || part.isStreaming === isStreaming ? part : { ...part, isStreaming },
  );
}

/** The same object if no part changes. */
function withParts(turn: TurnState, map: (part: AssistantPart) => AssistantPart): TurnState {
  const parts = turn.parts.map(map);
  return parts.every((part, index) => part === turn.parts[index]) ? turn : { ...turn, parts };
}
