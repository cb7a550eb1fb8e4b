/**
 * What a turn shows, from its chunks. Pure: the same chunks give the same turn, in whatever pieces they are read.
 *
 * A turn that is read again from any earlier chunk does not change, because each chunk has a position and is applied once.
 */
import type { Chunk, Decision, SessionError, StopReason, WaitingFor } from '../types.generated.ts';
import type { AssistantPart, ReasoningPart, TextPart, ToolPart, ToolState } from './types.ts';

export interface TurnState {
  readonly turn: number;
  /** Of the last chunk. */
  readonly seq: number;
  readonly parts: readonly AssistantPart[];
  /** The next text is of another response, so it does not continue the last one. */
  readonly isNewResponse: boolean;
  /** The turn has ended. A retry continues it. */
  readonly isOver: boolean;
  readonly stopReason: StopReason | null;
  readonly error: SessionError | null;
  /** The last piece of text or input that was added; each names the one before it, so that `message.reset` can drop them. */
  readonly lastPiece: Piece | null;
}

/** Where a delta was added. */
interface Piece {
  readonly seq: number;
  /** Of the part. */
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

export function newTurn(turn: number): TurnState {
  return {
    turn,
    seq: 0,
    parts: [],
    isNewResponse: false,
    isOver: false,
    stopReason: null,
    error: null,
    lastPiece: null,
  };
}

/** The turn after this chunk; the same object if it was applied before. Chunks of unknown types only advance `seq`. */
export function applyToTurn(turn: TurnState, chunk: Chunk): TurnState {
  if (chunk.seq <= turn.seq) return turn;
  return { ...change(turn, chunk), seq: chunk.seq };
}

function change(turn: TurnState, chunk: Chunk): TurnState {
  switch (chunk.type) {
    case 'message.chunk':
      return addText(turn, 'text', chunk.delta, chunk.seq);
    case 'reasoning.chunk':
      return addText(turn, 'reasoning', chunk.delta, chunk.seq);
    case 'message.started':
      return { ...withText(turn, false), isNewResponse: true };
    case 'tool.input.chunk':
      return addInput(turn, chunk);
    case 'message.reset':
      return dropFrom(turn, chunk.fromSeq);
    case 'approval.requested': {
      const { operationId, toolCallId, name, input, expiresAt, by = null } = chunk;
      const approval = { operationId, decision: 'pending', reason: null, expiresAt, by, progress: null } as const;
      return withTool(turn, toolCallId, { tool: name, input, inputText: null, state: 'approval', approval });
    }
    case 'approval.decided': {
      const { toolCallId, progress } = chunk;
      const approval = toolOf(turn, toolCallId)?.approval;
      return approval ? withTool(turn, toolCallId, { approval: { ...approval, progress } }) : turn;
    }
    case 'approval.resolved':
      return resolve(turn, chunk);
    case 'tool.call': {
      const { toolCallId, tool, input, notRun = false } = chunk;
      const asked = toolOf(turn, toolCallId);
      const isEdited = asked?.approval != null && JSON.stringify(asked.input) !== JSON.stringify(input);
      return withTool(turn, toolCallId, {
        tool,
        input,
        inputText: null,
        state: notRun ? 'failed' : 'running',
        isStarted: !notRun,
        ...(isEdited && { isEdited, modelInput: asked.input }),
      });
    }
    case 'file.created': {
      const files = [...(toolOf(turn, chunk.toolCallId)?.files ?? []), chunk.file];
      return withTool(turn, chunk.toolCallId, { files });
    }
    case 'tool.result': {
      const { toolCallId, tool, input, output, error = null } = chunk;
      const state = stateOfResult(chunk, toolOf(turn, toolCallId)?.approval?.decision);
      const named = tool === undefined ? {} : { tool, input, inputText: null };
      return withTool(turn, toolCallId, { ...named, state, output, error });
    }
    case 'session.status': {
      const isRunning = chunk.status === 'running';
      if (!isRunning && chunk.status !== 'waiting') return end(turn, chunk.stopReason, chunk.error);
      const resumed = { ...turn, isOver: false, stopReason: null, error: null };
      return isRunning ? resumed : awaitResults(withText(resumed, false), chunk.waitingFor);
    }
    case 'turn.completed':
      return end(turn, chunk.stopReason, chunk.error);
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

function addInput(turn: TurnState, { toolCallId, toolName, delta, seq }: Chunk & { type: 'tool.input.chunk' }) {
  const inputText = toolOf(turn, toolCallId)?.inputText ?? '';
  const longer = withTool(turn, toolCallId, { tool: toolName, inputText: inputText + delta });
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
    if (part.type !== 'tool') return length === 0 ? [] : [{ ...part, text: part.text.slice(0, length) }];
    if (part.state !== 'input') return [part];
    return length === 0 ? [] : [{ ...part, inputText: part.inputText!.slice(0, length) }];
  });
  return withText({ ...turn, parts, lastPiece, isNewResponse: false }, false);
}

function resolve(turn: TurnState, chunk: Chunk & { type: 'approval.resolved' }): TurnState {
  const { toolCallId, decision, reason = null } = chunk;
  const part = toolOf(turn, toolCallId);
  if (!part?.approval) return turn;
  const state = decision === 'approved' ? 'running' : 'denied';
  return withTool(turn, toolCallId, { state, approval: { ...part.approval, decision, reason } });
}

function stateOfResult(
  { outcomeUnknown, error, notRun }: Chunk & { type: 'tool.result' },
  decision: Decision | 'pending' | undefined,
): ToolState {
  if (outcomeUnknown) return 'unknown';
  if (error === undefined) return 'done';
  return notRun && decision !== undefined && decision !== 'approved' ? 'denied' : 'failed';
}

/** Of the calls in progress, a client runs those that the session waits for. */
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

function toolOf(turn: TurnState, id: string): ToolPart | undefined {
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
