// Runs the turns of one active session: stores what the turn machine yields, as chunks, rows and events.
//
//   runner                                     turn machine (turn/turn.ts, pure)
//   loadTurn: definition, operations           -
//   resume: inbox, status, void text           -
//   runOneTurn: lists tools, runTurn(state) →  finds the step that `state` is in
//   append to the journal                   ←  yields `text` while the model responds
//   store response, calls, approvals        ←  yields `responded`
//   store that the call starts              ←  yields `callStarted`; runs the call only when asked for the next event
//   store result or unknown outcome         ←  yields `callEnded`
//   read the inbox into `state`             ←  yields `inbox` when something arrived
//   store results and the next model call   ←  yields `stepEnded`, and begins the next step
//   park the session, or continue           ←  yields `wait` (`offer` for a worker, `modelUnavailable` in an outage, `modelLimited`)
//   end the turn, begin the next or release ←  yields `end` or `fail`
//
// Each event is stored before the machine continues, so a crash loses nothing that was shown, and the machine resumes from the
// same state. To stop a turn, the runner aborts the machine's signal and ends the turn itself (finish-turn.ts).
import sql from 'sql-template-tag';
import { type createDefinitionCache, modelsOf } from '../agents/read-definition.ts';
import { createSpending } from '../budgets/session-spending.ts';
import type { Appender, TextHead } from '../journal/appender.ts';
import { OVER } from '../lib/aborted.ts';
import type { AskModel } from '../models/model/model.ts';
import type { Platform } from '../platform.ts';
import {
  firstExpiry,
  insertOperation,
  newModelCall,
  type Operation,
  updateOperation,
} from '../session-rows/operations.ts';
import type { SessionRow } from '../session-rows/session.ts';
import { shownText } from '../session-rows/shown-text.ts';
import { insertEntry } from '../session-rows/transcript.ts';
import type { Tools } from '../tools/tools.ts';
import { nextPlace } from '../turn/compaction.ts';
import { afterCrash } from '../turn/recovery.ts';
import { TurnStopped } from '../turn/stop-turn.ts';
import { runTurn, type TurnEnd, type TurnEvent, type TurnState } from '../turn/turn.ts';
import { modelName } from '../usage/prices.ts';
import { type Change, createActiveSession, expiredCalls } from './active-session.ts';
import type { ClaimedSession } from './claims/claim.ts';
import { crashFailure, endsCrashCount, isSuspect } from './claims/crashes.ts';
import {
  cancelForExpired,
  endStoppedTurn,
  endTurn,
  failTurn,
  type LastChange,
  type NextTurn,
  SessionEnded,
} from './finish-turn.ts';
import { releaseResults, withHeldResults } from './held-results.ts';
import { modelResponseChange } from './model-response.ts';
import { offerStep, responderOf } from './offer-step.ts';
import { responseItems } from './response-items.ts';
import { startCall, storeCall } from './start-call.ts';
import { storeCompaction } from './store-compaction.ts';
import { turnSpan, withModelTelemetry, withToolTelemetry } from './telemetry.ts';
import { recordMissingTools, setTools } from './tool-servers.ts';
import { addedEntry, agentSource, logIds, partsOfRow, type TurnContext, voidedText } from './turn-context.ts';
import { parkForModel, parkTurn, resumeForModel, stopAtDeadline, wakeAtExpiry } from './waiting.ts';

export interface TurnRunnerOptions {
  platform: Platform;
  appender: Appender;
  definitionOf: ReturnType<typeof createDefinitionCache>;
  ask: AskModel;
  tools: Pick<Tools, 'list' | 'run'>;
  /** The reason to release the session at the end of a step, if there is one. */
  leaving(): Error | undefined;
  maxCrashes: number | undefined;
}

export interface TurnRunner {
  /** Resolves when the session is parked, idle or ended. Throws `Fenced` if another node has claimed it, or the failure. */
  run(): Promise<void>;
  /** Something arrived for the session. */
  wake(): void;
  /** Stops its turn, or the whole session. */
  stop(stop: NonNullable<SessionRow['stop']>): void;
  /** Stops at once; `run` throws the reason. */
  abort(reason: Error): void;
  /** Whether its step may have crashed the processes that ran it. */
  isSuspect(): boolean;
  /** The deadline of the running turn; undefined while it is loaded. */
  deadline(): Date | undefined;
  readonly head: TextHead;
}

type Proceeding = 'continue' | 'stop'; // whether the machine continues with this turn

export function createTurnRunner(claimed: ClaimedSession, options: TurnRunnerOptions): TurnRunner {
  const { platform, appender } = options;
  const { db, clock, log } = platform;
  /** Aborted when the running turn is to stop. */
  let stopping = new AbortController();
  /** Aborted when the turn's timers are not needed any more. */
  let watching = new AbortController();
  const session = createActiveSession(claimed.row, platform, appender, {
    expires: () => context.state.definition.limits.onApprovalTimeout === 'deny',
    onStop: stop,
  });
  const { row, head } = session;
  const spending = createSpending(platform, row);
  const context: TurnContext = {
    platform,
    session,
    state: undefined as unknown as TurnState, // until the turn is loaded
    position: nextPlace(claimed.transcript, claimed.compaction, row.turn).position,
    startedAt: clock.now(),
    deadline: clock.now(),
  };
  let nextTurn: NextTurn | undefined;
  let isLoaded = false;

  function stop(what: NonNullable<SessionRow['stop']>): void {
    stopping.abort(new TurnStopped(what === 'cancel' ? 'cancelled' : 'interrupted'));
  }

  // ── What the turn machine yields ───────────────────────────────────────────────────────────────────────────────────

  async function handle(event: TurnEvent): Promise<Proceeding> {
    const [{ state }, now] = [context, clock.now()];
    switch (event.type) {
      case 'responding':
      case 'text':
      case 'reasoning':
      case 'toolInput':
        for (const item of responseItems(event)) await appender.append(head, item);
        return 'continue';

      case 'responded': {
        const { modelCall, calls, ran } = event;
        const usage = spending.add(event.model, event.usage);
        const { reportedTokens, leftOut } = state;
        const entry = addedEntry(context, now);
        const rules = { tools: state.tools, limits: state.definition.limits, source: agentSource(context) };
        const change = modelResponseChange(
          row,
          { modelCall, calls, ran, model: modelName(event.model), usage, entry, reportedTokens, leftOut },
          rules,
          now,
        );
        if (event.end) {
          const entries = event.results ? [{ role: 'tool' as const, content: event.results }] : [];
          return end(event.end, () => ({ ...change, entries }));
        }
        await session.commit(change);
        void wakeAtExpiry(context, watching.signal);
        return 'continue';
      }

      case 'compactionStarted':
      case 'compactionFailed':
      case 'compacted':
        await storeCompaction(context, event, spending);
        return event.type === 'compacted' ? unlessLeaving() : 'continue';

      case 'modelFailed': {
        const { modelCall, model, failure } = event;
        const why = { model, code: failure.code, retryAfterMs: failure.retryAfterMs };
        log.warn({ ...logIds(context), ...why }, 'model call failed; retrying');
        await resetText(modelCall, modelCall.kind === 'model' ? [sql`model_calls = model_calls + 1`] : []);
        return 'continue';
      }

      case 'modelUnavailable':
      case 'modelLimited':
        await appender.take(head); // text that was never shown needs no reset
        state.shownText = '';
        return (await parkForModel(context, event)) ? 'stop' : 'continue';

      case 'offer':
        return (await offerStep(context)) ? 'stop' : 'continue';

      case 'callStarted':
        if (await startCall(context, event.call, event.tool, now)) spending.share();
        return 'continue';

      case 'callRefused':
      case 'callReturned':
      case 'callEnded':
        await storeCall(context, event);
        return 'continue';

      case 'inbox':
        await takeInbox();
        return 'continue';

      case 'stepEnded': {
        const next = newModelCall(row.turn, event.nextStep, head.nextSeq);
        const entries = event.results ? [addedEntry(context, now)] : [];
        const statements = entries.map((entry) => insertEntry(row, entry));
        await session.commit({ statements: [...statements, insertOperation(row, next, now)] });
        return beginStep(next);
      }

      case 'repair': {
        const items = voidedText(head, event.first);
        const next = newModelCall(row.turn, event.nextStep, head.nextSeq + items.length);
        const entry = addedEntry(context, now);
        await session.commit({ items, statements: [insertEntry(row, entry), insertOperation(row, next, now)] });
        return beginStep(next);
      }

      case 'wait':
        return (await parkTurn(context, now)) ? 'stop' : 'continue';

      case 'end': {
        // A model call that was stored and never started.
        const unasked = state.operations.filter(({ status }) => status === 'pending');
        for (const operation of unasked) operation.status = 'cancelled';
        return end(event.end, () => ({
          statements: unasked.map((operation) => updateOperation(row, operation, now)),
          entries: event.results ? [{ role: 'tool', content: event.results }] : [],
        }));
      }

      case 'fail':
        nextTurn = await failTurn(context, appender, spending, event);
        return 'stop';
    }
  }

  async function end(how: TurnEnd, changeNow: (now: Date) => LastChange): Promise<Proceeding> {
    nextTurn = await endTurn(context, appender, how, changeNow);
    return 'stop';
  }

  /** Continues with the step, unless this node is about to stop. */
  function beginStep(next: Operation): Proceeding {
    context.state.operations.push(next);
    head.first = true;
    return unlessLeaving();
  }

  function unlessLeaving(): Proceeding {
    const reason = options.leaving();
    if (reason) throw reason;
    return 'continue';
  }

  /** Voids text that a model call without a response has shown, and stores where its next text begins. */
  async function resetText(modelCall: Operation, patch: Change['patch'] = []): Promise<void> {
    await appender.take(head); // text that was never shown needs no reset
    context.state.shownText = '';
    const items = voidedText(head, modelCall);
    modelCall.fromSeq = head.nextSeq + items.length;
    await session.commit({ items, patch, statements: [updateOperation(row, modelCall, clock.now())] });
    head.first = true;
  }

  // ── The inbox ──────────────────────────────────────────────────────────────────────────────

  async function takeInbox(): Promise<void> {
    const { operations, definition } = context.state;
    while (true) {
      await session.takeInbox(operations);
      const late = expiredCalls(operations, clock.now());
      // A turn that is to stop does not need its approvals any more.
      if (late.length === 0 || row.stop || definition.limits.onApprovalTimeout === 'deny') return;
      if (await cancelForExpired(context, appender, late)) session.abort(new SessionEnded());
      session.signal.throwIfAborted();
    }
  }

  // ── Turn after turn ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Loads a turn: the one that was claimed, or the next. */
  async function loadTurn(transcript: TurnState['transcript'], operations: Operation[]): Promise<void> {
    isLoaded = false;
    watching.abort(OVER);
    [watching, stopping] = [new AbortController(), new AbortController()];
    const definition = await options.definitionOf(row.organizationId, row.agentId, row.agentVersion!);
    context.startedAt = clock.now();
    context.deadline =
      row.turnDeadline ?? new Date(context.startedAt.getTime() + definition.limits.turnTimeoutSeconds * 1000);
    context.state = {
      ...partsOfRow(row),
      definition,
      models: modelsOf(definition),
      tools: [],
      unavailable: [],
      // Every read of the inbox updates the row, also those within a commit.
      get grantedTools() {
        return row.grantedTools;
      },
      transcript,
      operations,
      // At first, there is no state yet.
      compaction: context.state ? context.state.compaction : claimed.compaction,
      reportedTokens: context.state ? context.state.reportedTokens : row.reportedTokens,
      modelCalls: context.state?.modelCalls ?? row.modelCalls,
      shownText: '',
      underWay: new Map(),
    };
    isLoaded = true;
  }

  /** Runs the turn until the session is released or the next turn begins. */
  async function runOneTurn(): Promise<NextTurn | undefined> {
    nextTurn = undefined;
    context.span = turnSpan(context);
    const askModel = withModelTelemetry(context, options.ask);
    const ports = {
      ask: responderOf(context, askModel),
      askModel,
      run: withToolTelemetry(context, withHeldResults(context, options.tools.run)),
      refusal: spending.refusal,
      clock,
      deadline: context.deadline,
      random: Math.random,
      inboxCame: session.arrival,
      hasQueued: () => session.queued().length > 0,
    };
    const [{ state }, { signal }] = [context, stopping];
    const anyStop = AbortSignal.any([session.signal, signal]);
    session.setWithNextCommit([sql`turn_deadline = ${context.deadline}`]);
    stopAtDeadline(context, stopping, watching.signal);
    void wakeAtExpiry(context, watching.signal);
    try {
      anyStop.throwIfAborted();
      // Stored at once: a turn that crashes its node before it shows anything would otherwise never reach its deadline.
      if (claimed.isTakenOver && !row.turnDeadline) await session.commit({});
      // An MCP server may be slow, so the turn can already be stopped here.
      const listed = await options.tools.list({ ...row, endUser: state.endUser }, state.definition.tools, anyStop);
      setTools(state, listed);
      await recordMissingTools(context, listed.unavailable);
      for await (const event of runTurn(state, ports, anyStop)) {
        session.signal.throwIfAborted();
        if (endsCrashCount(event)) session.endCrashCount();
        if ((await handle(event)) === 'stop') break;
      }
      return nextTurn;
    } catch (error) {
      if (session.signal.aborted || error !== signal.reason) throw error;
      return await endStoppedTurn(context, appender, spending, signal.reason as TurnStopped);
    } finally {
      releaseResults(context);
      context.span?.end();
    }
  }

  /** Shows what arrived while no node ran the session. False if it keeps waiting. */
  async function resume(): Promise<boolean> {
    const { operations } = context.state;
    // A decision that arrived between the claim and the read of the operations is shown before it takes effect.
    const hasCalls = operations.some(({ kind }) => kind === 'tool');
    if (row.inbox > 0 || hasCalls || row.stop) await takeInbox();
    const isForModel = row.waitingFor?.type === 'model';
    if (isForModel && !stopping.signal.aborted) {
      await resumeForModel(context);
    } else if (row.status === 'waiting' && !stopping.signal.aborted) {
      const patch = [sql`runnable_at = ${firstExpiry(operations)}`];
      if (await session.commitAndRelease({ patch }, operations)) return false;
      return resume();
    }
    context.deadline = row.turnDeadline ?? context.deadline;
    if (context.deadline <= clock.now()) stopping.abort(new TurnStopped('timedOut'));
    const unanswered = operations.find(({ kind, status }) => kind === 'model' && status === 'pending');
    // Before it starts, statuses may have been shown.
    const isCompacting = operations.some(({ kind, status }) => kind === 'compaction' && status === 'pending');
    if (!isCompacting && unanswered && head.nextSeq > unanswered.fromSeq!) {
      // Text that a stopped turn has shown stays, but not that of one which fails.
      const isStopped = stopping.signal.aborted && (stopping.signal.reason as TurnStopped).why !== 'error';
      if (isStopped) context.state.shownText = await shownText(db, row, unanswered);
      else if (stopping.signal.aborted || afterCrash(unanswered, undefined) === 'retried') await resetText(unanswered);
    }
    return true;
  }

  return {
    head,
    wake: session.wake,
    stop,
    abort: session.abort,
    isSuspect: () => isSuspect(row),
    deadline: () => (isLoaded ? context.deadline : undefined),
    async run() {
      try {
        await loadTurn(claimed.transcript, claimed.operations);
        const failure = crashFailure(row, options.maxCrashes);
        if (failure) stopping.abort(failure);
        if (!(await resume())) return;
        for (let next = await runOneTurn(); next; next = await runOneTurn()) {
          row.agentVersion = next.agentVersion;
          context.position = 1;
          head.first = true;
          await loadTurn([...context.state.transcript, ...next.transcript], [next.beginning.modelCall]);
        }
      } finally {
        watching.abort(OVER);
      }
    },
  };
}
