// A step that a worker runs, as it is stored in the step's model call while that is `pending`: `input` is the offer, `output`
// the worker's submission. The turn machine reads a submission as it reads a model's response.
import sql, { type Sql } from 'sql-template-tag';
import { derivedUuid } from '../lib/ids.ts';
import type { Operation, PricedUsage, TokenUsage } from './operations.ts';
import type { Ran } from './ran.ts';

interface OfferedTool {
  name: string;
  description: string;
  inputSchema: Record<string, unknown>;
}

/** What a worker gets with the step: the tools as they were listed for it. */
export interface Offer {
  tools: (OfferedTool & { client: boolean })[];
  /** Texts for the worker about tools that are not available now. */
  unavailable: readonly string[];
}

/** What a worker submitted. Its text is in the journal. */
export interface Submission {
  /** The worker's claim, from which the ids of its calls follow. Left out by releases that did not show the input of calls early. */
  workerTurnId?: string;
  toolCalls: { tool: string; input: unknown }[];
  /** What the worker's provider ran itself, and what the text cites. */
  ran?: Ran;
  stopReason: 'endTurn' | 'maxOutputTokens' | 'refusal';
  usage: TokenUsage;
  /** As the worker reported it, or else by the operator's price of the model. Left out if there is neither. */
  costUsd?: number;
  /** `worker/queue`. Left out by releases that did not count a submission whose turn is stopped. */
  model?: string;
  error?: { code: string; message: string };
}

/** Stores the offer. */
export function storeOffer(
  owner: { organizationId: string },
  modelCall: Operation,
  tools: readonly (OfferedTool & { runsAs: string })[],
  unavailable: readonly string[],
): Sql {
  const offer: Offer = {
    tools: tools.map(({ name, description, inputSchema, runsAs }) => ({
      name,
      description,
      inputSchema,
      client: runsAs === 'client',
    })),
    unavailable,
  };
  modelCall.input = offer;
  return sql`
    update operations set input = ${JSON.stringify(offer)}
    where organization_id = ${owner.organizationId} and operation_id = ${modelCall.operationId}`;
}

/** Stores the submission and deletes the offer: the tools of MCP servers can be long, and every step has them. */
export function storeSubmission(owner: { organizationId: string }, modelCall: Operation, submission: Submission): Sql {
  return sql`
    update operations set input = null, output = ${JSON.stringify(submission)}
    where organization_id = ${owner.organizationId} and operation_id = ${modelCall.operationId}`;
}

/** The operation of a call that a worker requests, also before it has: the input may be shown while it is written. */
export function callOfWorker(workerTurnId: string, index: number): string {
  return derivedUuid(workerTurnId, index);
}

/** What a step used whose turn is stopped before its submission is read; undefined if there is none, or it used nothing. */
export function submittedUsage(operation: Operation): { model: string; usage: PricedUsage } | undefined {
  if (operation.kind !== 'model' || !isSubmitted(operation)) return undefined;
  const { model, usage, costUsd = null, error } = operation.output as Submission;
  // A worker that failed before it called a model has made no step, as when its submission is read.
  const isNothing = usage.inputTokens + usage.outputTokens + (costUsd ?? 0) === 0;
  return model === undefined || (error && isNothing) ? undefined : { model, usage: { ...usage, costUsd } };
}

/** Whether a worker has submitted the step. */
export function isSubmitted({ status, output }: Pick<Operation, 'status' | 'output'>): boolean {
  return status === 'pending' && output !== null;
}
