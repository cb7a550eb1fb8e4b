// What a step's program is asked and what it answered, in the step's model call: `input` is what was offered, `output` the
// answer, both there only while the call is `pending`. The turn machine takes the answer as it takes a model's.
import sql, { type Sql } from 'sql-template-tag';
import type { TurnTool } from '../../runtime/tools/tool.ts';
import type { Operation, TokenUsage } from './operations.ts';

/** What is offered with a step: the tools as they were listed for it. */
export interface Offer {
  tools: (Pick<TurnTool, 'name' | 'description' | 'inputSchema'> & { client: boolean })[];
  /** What the program is told of tools that it can't be offered now. */
  unavailable: readonly string[];
}

/** What a program said; the text of it stands in the journal. */
export interface Submission {
  toolCalls: { tool: string; input: unknown }[];
  stopReason: 'endTurn' | 'maxOutputTokens' | 'refusal';
  usage: TokenUsage;
  /** What the program says that it cost; else the price is looked up as for other models. */
  costUsd?: number;
  error?: { code: string; message: string };
}

/** Stores what is offered with the step. */
export function storeOffer(
  owner: { organizationId: string },
  modelCall: Operation,
  tools: readonly TurnTool[],
  unavailable: readonly string[],
): Sql {
  const offer: Offer = {
    tools: tools.map(({ name, description, inputSchema, source }) => ({
      name,
      description,
      inputSchema,
      client: source.type === 'client',
    })),
    unavailable,
  };
  modelCall.input = offer;
  return sql`
    update operations set input = ${JSON.stringify(offer)}
    where organization_id = ${owner.organizationId} and operation_id = ${modelCall.operationId}`;
}

/** What was offered is not kept: the tools of MCP servers can be long, and each step has them. */
export function storeSubmission(owner: { organizationId: string }, modelCall: Operation, answer: Submission): Sql {
  return sql`
    update operations set input = null, output = ${JSON.stringify(answer)}
    where organization_id = ${owner.organizationId} and operation_id = ${modelCall.operationId}`;
}

/** Whether the program has answered the step. */
export function isSubmitted({ status, output }: Pick<Operation, 'status' | 'output'>): boolean {
  return status === 'pending' && output !== null;
}
