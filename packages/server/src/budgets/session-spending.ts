// Whether a session may make one more model call. Its budget is that of the root session, which all its descendants share.
//
// Each call is one step, so calls of sessions that share a budget are admitted one after another, under the lock of the root's
// row, and running calls count: `maxSteps` is never exceeded. What a call costs in tokens and money is known only with its
// response, so calls that are running when that limit is reached still finish.
//
// A session without relatives needs no lock. What a key can spend in a day limits all sessions of the key as well (key-spending.ts), and
// budgets with `stop` all sessions that they are for (stops.ts).
import type { Budget, Model, SessionError } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { ReportedUsage } from '../models/model/model.ts';
import type { Platform } from '../platform.ts';
import type { Operation, PricedUsage } from '../session-rows/operations.ts';
import type { SessionRow } from '../session-rows/session.ts';
import { modelName, roundUsd } from '../usage/prices.ts';
import { isSpent } from './key-spending.ts';
import { isFor } from './stops.ts';

export interface Spending {
  /** Why this call is not made; undefined if it is, and counts from now on. `models`: each model that may respond. */
  refusal(modelCall: Operation, models: readonly Model[]): Promise<'budgetReached' | SessionError | undefined>;
  /** A call of this session has a response of the model. Returns what it used with its cost, which is computed unless it is known. */
  add(model: Model, used: ReportedUsage): PricedUsage;
  /** A call of this session has used this, at a cost that is computed already. */
  count(used: PricedUsage): void;
  /** The session has a child now. */
  share(): void;
}

interface Spent {
  steps: number;
  tokens: number;
  costUsd: number | null;
}

export function createSpending(
  {
    db,
    clock,
    prices,
    keySpending,
    budgetStops,
  }: Pick<Platform, 'db' | 'clock' | 'prices' | 'keySpending' | 'budgetStops'>,
  row: SessionRow,
): Spending {
  const { organizationId, sessionId, keyId, budget } = row;
  const root = row.rootSessionId ?? sessionId;
  const own: Spent = { steps: row.steps, tokens: row.inputTokens + row.outputTokens, costUsd: row.costUsd };
  /** Undefined: not known yet. */
  let shared = row.rootSessionId === null ? undefined : true;

  async function hasChildren(): Promise<boolean> {
    const found = await db.execute(sql`
      select 1 from sessions where organization_id = ${organizationId} and root_session_id = ${sessionId} limit 1`);
    return found > 0;
  }

  function isReachedByAll(limits: Budget, { operationId }: Operation): Promise<boolean> {
    return db.transaction(async (tx) => {
      const [, [spent]] = await Promise.all([
        tx.query(sql`
          select 1 from sessions where organization_id = ${organizationId} and session_id = ${root} for no key update`),
        tx.query<Spent>(sql`
          select sum(s.input_tokens + s.output_tokens)::float8 as tokens, sum(s.cost_usd)::float8 as "costUsd",
            sum(s.steps)::float8 + (
              select count(*) from operations o
              join sessions x on x.organization_id = o.organization_id and x.session_id = o.session_id and x.turn = o.turn
              where o.organization_id = ${organizationId} and (x.session_id = ${root} or x.root_session_id = ${root})
                and o.kind in ('model', 'compaction') and o.status = 'pending' and o.started_at is not null
                and o.operation_id <> ${operationId}
            ) as steps
          from sessions s
          where s.organization_id = ${organizationId} and (s.session_id = ${root} or s.root_session_id = ${root})`),
      ]);
      if (isReached(limits, spent!)) return true;
      await tx.query(sql`
        update operations set started_at = coalesce(started_at, ${clock.now()}::timestamptz)
        where organization_id = ${organizationId} and operation_id = ${operationId}`);
      return false;
    });
  }

  function count({ inputTokens, outputTokens, costUsd }: PricedUsage): void {
    own.steps += 1;
    own.tokens += inputTokens + outputTokens;
    if (costUsd !== null) own.costUsd = roundUsd((own.costUsd ?? 0) + costUsd);
    if (costUsd !== null && keyId !== null) keySpending.add(organizationId, keyId, costUsd);
    if (costUsd !== null) budgetStops.add(organizationId, row, costUsd);
  }

  return {
    count,
    async refusal(modelCall, models) {
      const ofKey = keyId === null ? undefined : await keySpending.of(organizationId, keyId);
      const stops = (await budgetStops.of(organizationId)).filter((stop) => isFor(stop, row));
      const unpriced = models.find((model) => !prices.has(model));
      const inMoney =
        (budget?.maxCostUsd !== undefined && 'budget') ||
        (ofKey && 'budget of the API key') ||
        (stops[0] && `budget "${stops[0].name}"`);
      if (unpriced !== undefined && inMoney) {
        return {
          code: 'budget_invalid',
          message: `The ${inMoney} is in money, and no price is configured for ${modelName(unpriced)}.`,
        };
      }
      if ((ofKey && isSpent(ofKey)) || stops.some(({ isUsedUp }) => isUsedUp)) return 'budgetReached';
      if (!budget) return undefined;
      shared ??= await hasChildren();
      const reached = shared ? await isReachedByAll(budget, modelCall) : isReached(budget, own);
      return reached ? 'budgetReached' : undefined;
    },
    add(model, used) {
      const priced = { ...used, costUsd: used.costUsd ?? prices.costOf(model, used) };
      count(priced);
      return priced;
    },
    share() {
      shared = true;
    },
  };
}

function isReached({ maxSteps, maxTokens, maxCostUsd }: Budget, { steps, tokens, costUsd }: Spent): boolean {
  return (
    (maxSteps !== undefined && steps >= maxSteps) ||
    (maxTokens !== undefined && tokens >= maxTokens) ||
    (maxCostUsd !== undefined && (costUsd ?? 0) >= maxCostUsd)
  );
}
