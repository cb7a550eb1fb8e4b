// A budget in money needs a model whose calls have a known cost.
import type { Budget } from '@signalbox/contract';
import { modelsOf, readDefinition } from '../agents/read-definition.ts';
import type { Queryable } from '../db/db.ts';
import { ApiError } from '../lib/api-error.ts';
import type { Platform } from '../platform.ts';
import { modelName } from '../usage/prices.ts';

/** The name of the agent's model, or of a fallback, if the budget needs its price and the operator has not configured one. */
export async function unpricedModel(
  { prices }: Pick<Platform, 'prices'>,
  db: Queryable,
  agent: { organizationId: string; agentId: string; version: number },
  budget: Budget | null | undefined,
): Promise<string | undefined> {
  if (budget?.maxCostUsd === undefined) return undefined;
  const definition = await readDefinition(db, agent.organizationId, agent.agentId, agent.version);
  const { compaction } = definition.model;
  const unpriced = [...modelsOf(definition), ...(compaction ? [compaction] : [])].find((model) => !prices.has(model));
  return unpriced && modelName(unpriced);
}

/** 422 `budget_invalid` in the same case. */
export async function requirePrice(...of: Parameters<typeof unpricedModel>): Promise<void> {
  const model = await unpricedModel(...of);
  if (model === undefined) return;
  throw new ApiError('budget_invalid', `budget.maxCostUsd: no price is configured for ${model}.`, {
    errors: [{ path: 'budget.maxCostUsd', message: `needs a configured price for ${model}` }],
  });
}
