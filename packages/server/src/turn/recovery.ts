// What each operation becomes after a crash, and when its turn is stopped. Everything that decides it reads this table: the
// turn machine and the turn runner when they resume a turn, stop-turn.ts, and the claims of workers (workers/claims.ts).
//
// A node that crashes, and a worker whose claim is revoked, leave their operations as they were to the node that claims the
// session next. A worker that releases its claim says that it will not run its calls: they become `releasedCall.to` (operations.ts).
import type { Operation, OperationStatus } from '../session-rows/operations.ts';
import { isSubmitted } from '../session-rows/submission.ts';
import type { RunsAs } from '../tools/tool/tool.ts';

export type AfterCrash =
  /** It is not repeated: its result is used, or the submission of its worker. */
  | 'reused'
  /** It runs again: a model call after a `message.reset`, a compaction, a tool call with the same `Idempotency-Key`. */
  | 'retried'
  /** It had not started, and may start. */
  | 'started'
  /** The turn waits for the approver, the client, the worker or the child session. */
  | 'awaited'
  /** It is not repeated. Its result says that it may or may not have taken effect. */
  | 'unknown'
  /** Its tool does not exist any more. */
  | 'failed';

export type AfterStop = 'reused' | 'cancelled' | 'unknown';

interface Rule {
  status: readonly OperationStatus[];
  /** Left out: either. */
  repeatable?: boolean;
  /** What runs the call's tool; `none` if the tool does not exist any more. Left out: any. */
  runsAs?: RunsAs | 'none';
  /** Whether a worker has submitted a response to the model call. Left out: either. */
  submitted?: boolean;
  crash: AfterCrash;
  stop: AfterStop;
}

/** The first rule that fits an operation applies. */
const rules: readonly Rule[] = [
  { status: ['succeeded', 'failed', 'denied', 'cancelled', 'unknown'], crash: 'reused', stop: 'reused' },
  { status: ['pending'], submitted: true, crash: 'reused', stop: 'cancelled' },
  { status: ['pending'], crash: 'retried', stop: 'cancelled' },
  { status: ['ready'], crash: 'started', stop: 'cancelled' },
  { status: ['awaiting_approval', 'awaiting_result', 'awaiting_session'], crash: 'awaited', stop: 'cancelled' },
  { status: ['running'], repeatable: false, crash: 'unknown', stop: 'unknown' },
  { status: ['running'], runsAs: 'none', crash: 'failed', stop: 'cancelled' },
  { status: ['running'], runsAs: 'client', crash: 'awaited', stop: 'cancelled' },
  { status: ['running'], crash: 'retried', stop: 'cancelled' },
];

type Interrupted = Pick<Operation, 'status' | 'output' | 'repeatable'>;

/** `runsAs`: of a tool call's tool; undefined if it does not exist any more, and for a model call. */
export function afterCrash(operation: Interrupted, runsAs: RunsAs | undefined): AfterCrash {
  return ruleFor(operation, runsAs).crash;
}

/** What a stop does with an operation without a result: a call that ended while its turn was stopped has one. */
export function afterStop(operation: Interrupted): AfterStop {
  return ruleFor(operation, undefined).stop;
}

function ruleFor(operation: Interrupted, runsAs: RunsAs | 'none' = 'none'): Rule {
  return rules.find(
    (rule) =>
      rule.status.includes(operation.status) &&
      (rule.repeatable ?? operation.repeatable) === operation.repeatable &&
      (rule.runsAs ?? runsAs) === runsAs &&
      (rule.submitted ?? isSubmitted(operation)) === isSubmitted(operation),
  )!;
}
