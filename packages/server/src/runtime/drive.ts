// Drives the turns of one Session that this node holds: what the turn machine yields becomes chunks, rows and events here.
import type { SessionStatus, StopReason, Usage } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import type { createDefinitions, Definition } from '../agents/agents.ts';
import { currentVersion } from '../agents/agents.ts';
import { requestApproval } from '../approvals/approvals.ts';
import { type EventDraft, recordEvent } from '../events/record.ts';
import type { Appender, Patch, TextHead } from '../journal/append.ts';
import type { NewChunk } from '../journal/segment.ts';
import { ApiError } from '../lib/api-error.ts';
import { formatId, newUuid } from '../lib/ids.ts';
import type { Platform } from '../platform.ts';
import {
  insertOperation,
  newModelCall,
  type Operation,
  resultChunk,
  toolCallIdOf,
  updateOperation,
  waitingForOf,
} from '../sessions/operations.ts';
import { type SessionRow, sessionEvent } from '../sessions/session.ts';
import { insertEntry, type TranscriptEntry } from '../sessions/transcript.ts';
import { beginTurn } from '../sessions/turns.ts';
import { type Change, createHold, type QueuedMessage } from './hold.ts';
import type { AskModel } from './models/model.ts';
import type { RunTool } from './tools/tool.ts';
import { runTurn, type TurnEvent, type TurnState } from './turn.ts';

/** A Session as it was claimed. */
export interface Claimed {
  row: SessionRow;
  transcript: TranscriptEntry[];
  /** Of the present turn. */
  operations: Operation[];
}

export interface DriveOptions {
  platform: Platform;
  appender: Appender;
  definitionOf: ReturnType<typeof createDefinitions>;
  ask: AskModel;
  run: RunTool;
}

export interface Drive {
  /** Resolves when the Session is parked, idle or ended. Throws `Fenced` where another writer has it, or the failure. */
  run(): Promise<void>;
  /** Something came for the Session. */
  wake(): void;
  /** Stops at once; `run` throws the reason. */
  abort(reason: Error): void;
  readonly head: TextHead;
}

export function createDrive(claimed: Claimed, options: DriveOptions): Drive {
  const { platform, appender } = options;
  const { db, clock, log } = platform;
  const hold = createHold(claimed.row, platform, appender);
  const { row, head } = hold;
  let position = claimed.transcript.filter(({ turn }) => turn === row.turn).length;
  let startedAt = clock.now();
  let state: TurnState;

  // ── What the turn machine yields ───────────────────────────────────────────────────────────────────────────────────

  /** Returns true when this Session is not held any more, or goes on with another turn. */
  async function handle(event: TurnEvent): Promise<boolean> {
    const now = clock.now();
    switch (event.type) {
      case 'text':
        await appender.append(head, event.delta);
        return false;

      case 'answered': {
        const { calls, usage } = event;
        const asked = calls.filter(({ status }) => status === 'awaiting_approval');
        const requests = asked.map(({ operationId, tool, input }) =>
          requestApproval(row, { operationId, name: tool!, input }, now),
        );
        const change: Change = {
          items: requests.map(({ chunk }) => chunk),
          patch: [
            sql`input_tokens = input_tokens + ${usage.inputTokens}`,
            sql`output_tokens = output_tokens + ${usage.outputTokens}`,
            sql`cached_tokens = cached_tokens + ${usage.cachedTokens}`,
            sql`steps = steps + 1`,
            sql`model_calls = model_calls + 1`,
            sql`tool_calls = tool_calls + ${calls.length}`,
          ],
          statements: [
            updateOperation(row, event.modelCall, now),
            ...calls.map((call) => insertOperation(row, call, now)),
            appendEntry('assistant', state.transcript.at(-1)!.content, now),
            ...requests.map(({ statement }) => statement),
            ...asked.map(({ operationId }) =>
              eventOf({
                type: 'approval.requested',
                ...sessionEvent(row),
                resource: { type: 'approval', id: formatId('op', operationId) },
              }),
            ),
          ],
        };
        if (event.stopReason) return endTurn(event.stopReason, change);
        await hold.commit(change);
        return false;
      }

      case 'modelFailed': {
        log.warn(
          { ...ids(), code: event.failure.code, retryAfterMs: event.failure.retryAfterMs },
          'model call failed; it is made again',
        );
        await resetText(event.modelCall, [sql`model_calls = model_calls + 1`]);
        return false;
      }

      case 'callStarted':
        await hold.commit({
          items: [
            {
              type: 'tool.call',
              tool: event.call.tool!,
              toolCallId: toolCallIdOf(event.call),
              input: event.call.input,
            },
          ],
          statements: [updateOperation(row, event.call, now)],
        });
        return false;

      case 'callEnded':
        await hold.commit({ items: [resultChunk(event.call)], statements: [updateOperation(row, event.call, now)] });
        return false;

      case 'inbox':
        await hold.takeInbox(state.operations);
        return false;

      case 'stepEnded': {
        const next = newModelCall(row.turn, event.nextStep, head.nextSeq);
        await hold.commit({ statements: [appendEntry('tool', event.results, now), insertOperation(row, next, now)] });
        state.operations.push(next);
        head.first = true;
        return false;
      }

      case 'wait': {
        const waitingFor = waitingForOf(state.operations);
        if (!waitingFor) throw new Error('A turn waits for nothing');
        const change = {
          items: [{ type: 'session.status' as const, status: 'waiting' as const, waitingFor }],
          patch: [sql`status = 'waiting'`, sql`waiting_for = ${JSON.stringify(waitingFor)}`],
          statements: [eventOf({ type: 'session.waiting', ...sessionEvent(row) })],
        };
        return hold.commitAndRelease(change, state.operations);
      }

      case 'end': {
        // A model call that was stored and is not made after all.
        const unasked = state.operations.filter(({ status }) => status === 'pending');
        for (const operation of unasked) operation.status = 'cancelled';
        return endTurn(event.stopReason, {
          statements: [
            ...unasked.map((operation) => updateOperation(row, operation, now)),
            ...(event.results ? [appendEntry('tool', event.results, now)] : []),
          ],
        });
      }

      case 'fail': {
        const failed = state.operations.filter(({ kind, status }) => kind === 'model' && status === 'failed');
        return endTurn('error', {
          patch: [sql`error = ${JSON.stringify(event.error)}`, sql`model_calls = model_calls + 1`],
          statements: failed.map((operation) => updateOperation(row, operation, now)),
        });
      }
    }
  }

  /** Ends the turn in the same transaction as `change`: the next message's turn, or idle, or the end of the Session. */
  async function endTurn(stopReason: StopReason, change: Change): Promise<boolean> {
    const usage = turnUsage();
    while (true) {
      const now = clock.now();
      const items: NewChunk[] = [...(change.items ?? []), { type: 'turn.completed', stopReason, usage }];
      const [next] = hold.queued();
      if (next && stopReason !== 'error') {
        if (await beginNext(next, { ...change, items }, stopReason, now)) return true;
        continue;
      }
      const status: SessionStatus =
        stopReason === 'error' ? 'failed' : row.closing || row.closeOnIdle ? 'completed' : 'idle';
      const ended = status !== 'idle';
      const last: Change = {
        ...change,
        items: [...items, { type: 'session.status', status, waitingFor: null, stopReason }],
        patch: [
          ...(change.patch ?? []),
          sql`status = ${status}`,
          sql`stop_reason = ${stopReason}`,
          ...(ended ? [sql`ended_at = ${now}`] : []),
        ],
        statements: [
          ...(change.statements ?? []),
          eventOf({
            type: `session.${status}` as EventDraft['type'],
            outcome: status === 'failed' ? 'failure' : 'success',
            ...sessionEvent(row),
          }),
        ],
      };
      if (await hold.commitAndRelease(last, state.operations)) {
        logTurn(stopReason, status);
        return true;
      }
    }
  }

  async function beginNext(
    next: QueuedMessage,
    change: Change & { items: NewChunk[] },
    stopReason: StopReason,
    now: Date,
  ): Promise<boolean> {
    const version = row.pinnedVersion ?? (await newestVersion());
    const begun = beginTurn(row, row.turn + 1, { messageId: next.inboxId, content: next.content }, version, now);
    const beginning = {
      items: change.items,
      next: begun.run,
      patch: [...(change.patch ?? []), ...begun.patch],
      statements: [...(change.statements ?? []), ...begun.statements],
    };
    const { turn } = row;
    if (!(await hold.commitAndBegin(beginning, state.operations))) return false;
    logTurn(stopReason, 'running', turn);
    row.agentVersion = version;
    position = 1;
    startedAt = now;
    head.first = true;
    state = await stateOf([...state.transcript, begun.entry], [begun.modelCall]);
    return true;
  }

  /** Says that text shown by an unanswered model call is void, and remembers where its next text begins. */
  async function resetText(modelCall: Operation, patch: Patch = []): Promise<void> {
    await appender.take(head); // what was never shown need not be taken back
    const shown = head.nextSeq > modelCall.fromSeq!;
    const items: NewChunk[] = shown ? [{ type: 'message.reset', fromSeq: modelCall.fromSeq! }] : [];
    modelCall.fromSeq = head.nextSeq + items.length;
    await hold.commit({ items, patch, statements: [updateOperation(row, modelCall, clock.now())] });
    head.first = true;
  }

  // ── Small parts ────────────────────────────────────────────────────────────────────────────────────────────────────

  async function stateOf(transcript: TurnState['transcript'], operations: Operation[]): Promise<TurnState> {
    const definition: Definition = await options.definitionOf(row.organizationId, row.agentId, row.agentVersion!);
    return {
      organizationId: row.organizationId,
      environment: row.environment,
      turn: row.turn,
      definition,
      budget: row.budget,
      transcript,
      operations,
      steps: state?.steps ?? row.steps,
      tokens: state?.tokens ?? row.inputTokens + row.outputTokens,
      modelCalls: state?.modelCalls ?? row.modelCalls,
    };
  }

  async function newestVersion(): Promise<number> {
    // A message that was accepted has its turn, also when the Agent was archived meanwhile.
    return currentVersion(db, row.organizationId, row.agentId).catch((error) => {
      if (error instanceof ApiError && error.code === 'agent_archived') return row.agentVersion!;
      throw error;
    });
  }

  function appendEntry(role: 'assistant' | 'tool', content: TranscriptEntry['content'], createdAt: Date): Sql {
    const entry: TranscriptEntry = { turn: row.turn, position, messageId: newUuid(), role, content, createdAt };
    position += 1;
    return insertEntry(row, entry);
  }

  function eventOf(draft: EventDraft): Sql {
    return recordEvent(
      {
        organizationId: row.organizationId,
        actor: { type: 'agent', id: formatId('agt', row.agentId), name: state.definition.name },
        requestId: null,
        ipAddress: null,
        userAgent: null,
      },
      clock.now(),
      draft,
    );
  }

  function turnUsage(): Usage {
    const models = state.operations.filter(({ kind, usage }) => kind === 'model' && usage !== null);
    const sum = (of: (operation: Operation) => number) => models.reduce((total, operation) => total + of(operation), 0);
    return {
      inputTokens: sum(({ usage }) => usage!.inputTokens),
      outputTokens: sum(({ usage }) => usage!.outputTokens),
      cachedTokens: sum(({ usage }) => usage!.cachedTokens),
      steps: models.length,
      toolCalls: state.operations.filter(({ kind }) => kind === 'tool').length,
      costUsd: null,
    };
  }

  function ids() {
    return {
      organizationId: formatId('org', row.organizationId),
      sessionId: formatId('ses', row.sessionId),
      agentId: formatId('agt', row.agentId),
      turn: row.turn,
    };
  }

  function logTurn(stopReason: StopReason, status: SessionStatus, turn = row.turn): void {
    const { steps, toolCalls, inputTokens, outputTokens } = turnUsage();
    const durationMs = clock.now().getTime() - startedAt.getTime();
    log.info({ ...ids(), turn, stopReason, status, steps, toolCalls, inputTokens, outputTokens, durationMs }, 'turn');
  }

  async function driveTurn(): Promise<boolean> {
    const turn = row.turn;
    const ports = {
      ask: options.ask,
      run: options.run,
      sleep: (ms: number, signal: AbortSignal) => clock.sleep(ms, signal),
      random: Math.random,
      inboxCame: hold.came,
    };
    for await (const event of runTurn(state, ports, hold.signal)) {
      hold.signal.throwIfAborted();
      if (await handle(event)) break;
    }
    return row.turn > turn;
  }

  return {
    head,
    wake: hold.wake,
    abort: hold.abort,
    async run() {
      state = await stateOf(claimed.transcript, claimed.operations);
      // A decision that came between the claim and the reading of the operations is shown before it is acted on.
      const hasCalls = state.operations.some(({ kind }) => kind === 'tool');
      if (row.inbox > 0 || hasCalls) await hold.takeInbox(state.operations);
      const unanswered = state.operations.find(({ kind, status }) => kind === 'model' && status === 'pending');
      if (unanswered && head.nextSeq > unanswered.fromSeq!) await resetText(unanswered);
      while (await driveTurn());
    },
  };
}
