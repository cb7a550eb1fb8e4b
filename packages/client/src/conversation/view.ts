/** The snapshot of a session, from its sources. Objects that show the same are the same objects, so that components can be memoized. */
import type { Message } from '../types.generated.ts';
import type { SessionFollower } from './follower.ts';
import type { JournalState } from './journal.ts';
import type { Outbox } from './outbox.ts';
import { messagesOf, userMessageOf } from './transcript.ts';
import type { TurnState } from './turn.ts';
import type {
  AssistantMessage,
  PendingApproval,
  SessionFailure,
  SessionMessage,
  SessionSnapshot,
  UserMessage,
} from './types.ts';

export interface Sources {
  follower: SessionFollower;
  outbox: Outbox;
  deciding: ReadonlySet<string>;
  failure: SessionFailure | null;
  connection: SessionSnapshot['connection'];
  isLoadingEarlier: boolean;
}

const none: readonly never[] = [];

export function createView(): (sources: Sources) => SessionSnapshot {
  let settled: { of: readonly Message[]; liveFrom: number; messages: SessionMessage[] } | undefined;
  const users = new Map<string, UserMessage>();
  const assistants = new WeakMap<TurnState, AssistantMessage>();

  function userMessage(message: Message, outbox: Outbox): UserMessage {
    const id = outbox.idOf(message.messageId);
    const before = users.get(message.messageId);
    if (before && before.turn === message.turn && before.id === id) return before;
    const shown = userMessageOf(message, id);
    users.set(message.messageId, shown);
    return shown;
  }

  function assistantMessage(turn: TurnState): AssistantMessage {
    const before = assistants.get(turn);
    if (before) return before;
    const { parts, isOver, stopReason, error } = turn;
    const id = `turn_${turn.turn}`;
    const status = isOver ? 'done' : 'streaming';
    const shown: AssistantMessage = { role: 'assistant', id, turn: turn.turn, parts, status, stopReason, error };
    assistants.set(turn, shown);
    return shown;
  }

  function settledMessages({ follower: { history, liveFrom }, outbox }: Sources): readonly SessionMessage[] {
    const of = history?.messages ?? none;
    if (settled?.of !== of || settled.liveFrom !== liveFrom) {
      const messages = messagesOf(
        of.filter(({ turn }) => turn! < liveFrom),
        (messageId) => outbox.idOf(messageId),
      );
      settled = { of, liveFrom, messages };
    }
    return settled.messages;
  }

  /** The turns of the journal, each after its user's message; then messages whose turn has not started. */
  function liveMessages({ follower: { history, journal, liveFrom }, outbox }: Sources): SessionMessage[] {
    const starts = new Map<number, UserMessage>();
    for (const message of history?.messages ?? none) {
      const { turn, role } = message;
      // Further ones of a turn are from the service.
      if (turn! >= liveFrom && role === 'user' && !starts.has(turn!)) starts.set(turn!, userMessage(message, outbox));
    }
    const queued = (history?.queued ?? none).map((message) => userMessage(message, outbox));
    const inTranscript = new Set([...starts.values(), ...queued].map(({ messageId }) => messageId));
    const sent = outbox.entries.map(({ message }) => message);
    const waiting = [...queued, ...sent.filter(({ messageId }) => !messageId || !inTranscript.has(messageId))];

    const turns = new Map(journal.turns.filter(({ turn }) => turn >= liveFrom).map((turn) => [turn.turn, turn]));
    const numbers = [...new Set([...starts.keys(), ...turns.keys()])].sort((one, other) => one - other);
    const messages: SessionMessage[] = [];
    for (const number of numbers) {
      // Until the transcript is read, a new turn is that of the first message that waits for one.
      const user = starts.get(number) ?? waiting.splice(0, 1)[0];
      const turn = turns.get(number);
      if (user) messages.push(user);
      if (turn) messages.push(assistantMessage(turn));
    }
    return [...messages, ...waiting];
  }

  return (sources) => {
    const { follower, outbox, failure } = sources;
    const { sessionId, session, history, journal, isCaughtUp } = follower;
    const live = liveMessages(sources);
    const now = isCaughtUp && journal.status !== null ? journal : session;
    const status = now?.status ?? (sessionId === null ? 'new' : 'loading');
    const last = live.findLast((message): message is AssistantMessage => message.role === 'assistant');
    const turnError = last?.status === 'done' && last.error ? { of: 'turn' as const, ...last.error } : null;
    const isUnanswered = live.at(-1)?.role === 'user' && status !== 'waiting';
    return {
      sessionId,
      messages: [...settledMessages(sources), ...live],
      status,
      isBusy:
        status === 'running' || (isUnanswered && outbox.entries.some(({ message }) => message.status !== 'failed')),
      waitingFor: now?.waitingFor ?? null,
      pendingApprovals: isCaughtUp ? pendingApprovals(journal, sources.deciding) : none,
      error: failure ?? turnError,
      connection: sources.connection,
      hasEarlier: history?.hasEarlier ?? false,
      isLoadingEarlier: sources.isLoadingEarlier,
    };
  };
}

function pendingApprovals({ turns }: JournalState, deciding: ReadonlySet<string>): readonly PendingApproval[] {
  const parts = turns.at(-1)?.parts ?? none;
  return parts.flatMap((part): PendingApproval[] => {
    if (part.type !== 'tool' || part.approval?.decision !== 'pending') return [];
    const { operationId, expiresAt, by, progress } = part.approval;
    const { id: toolCallId, tool, input } = part;
    return [{ operationId, toolCallId, tool, input, expiresAt, by, progress, isDeciding: deciding.has(operationId) }];
  });
}
