// What a decision does to an approval: a pure function over what was decided before.
//
// Approvers approve an exact input: the model's, or another that they name. Approvals count together only if their inputs are equal, so
// approvers approve only what they have seen, whatever arrives at the same time. An approver can replace their approval by one of
// another input until the approval is resolved.
import type { Approval, ApprovalProgress, Approvers } from '@signalbox/contract';
import { isSameJson } from '../lib/json/same-json.ts';
import { isSameDecider } from './approvers.ts';

/** A decision as stored. `deciders`: the identities of the caller, its own first (approvers.ts). */
export interface StoredDecision {
  readonly decision: 'approved' | 'denied';
  readonly actor: NonNullable<Approval['resolvedBy']>;
  readonly at: string;
  readonly reason: string | null;
  /** Undefined: as the model requested it. */
  readonly input?: unknown;
  readonly scope: 'once' | 'session';
  readonly deciders: readonly string[];
}

/** An approval, as far as its decisions depend on it. */
export interface PendingApproval {
  readonly input: unknown;
  readonly by: Approvers | null;
  readonly decisions: readonly StoredDecision[];
}

export interface DecisionResult {
  readonly decisions: readonly StoredDecision[];
  readonly progress: ApprovalProgress;
  /** Undefined: more approvers are needed. */
  readonly status?: 'approved' | 'denied';
  /** The decisions that approved it together; empty unless it is approved. */
  readonly agreeing: readonly StoredDecision[];
}

/** Adds a decision. `repeated` if the same approver has approved the same input. */
export function addDecision(approval: PendingApproval, given: StoredDecision): DecisionResult | 'repeated' {
  const { input, by, decisions: before } = approval;
  const own = before.filter((made) => isSameDecider(made.deciders, given.deciders));
  if (given.decision === 'approved' && own.some((made) => isSameInput(input, made, given))) return 'repeated';
  const decisions = [...before.filter((made) => !own.includes(made)), given];
  const progress = progressOf({ input, by, decisions });
  if (given.decision === 'denied') return { decisions, progress, status: 'denied', agreeing: [] };
  const agreeing = decisions.filter((made) => isSameInput(input, made, given));
  return agreeing.length < progress.required
    ? { decisions, progress, agreeing: [] }
    : { decisions, progress, status: 'approved', agreeing };
}

/** How many have approved the input that most have approved. */
export function progressOf({ input, by, decisions }: PendingApproval): ApprovalProgress {
  const approvals = decisions.filter(({ decision }) => decision === 'approved');
  const sizes = approvals.map((one) => approvals.filter((other) => isSameInput(input, one, other)).length);
  return { approved: Math.max(0, ...sizes), required: by?.count ?? 1 };
}

/** The different inputs that approvers have approved. */
export function countInputs({ input, decisions }: PendingApproval): number {
  const approvals = decisions.filter(({ decision }) => decision === 'approved');
  return approvals.filter((one, index) => approvals.findIndex((other) => isSameInput(input, one, other)) === index)
    .length;
}

function isSameInput(input: unknown, one: StoredDecision, other: StoredDecision): boolean {
  const of = (made: StoredDecision) => (made.input === undefined ? input : made.input);
  return one.decision === 'approved' && other.decision === 'approved' && isSameJson(of(one), of(other));
}
