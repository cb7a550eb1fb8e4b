// What a Session and those that share its budget have used. The root's budget is for all below it; where a Session has no
// relatives, what this node knows is all there is.
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import type { PricedUsage } from '../sessions/operations.ts';
import type { SessionRow } from '../sessions/session.ts';
import type { Spent } from './turn.ts';

export interface Spending {
  add(usage: PricedUsage): void;
  /** From now on there are others. */
  share(): void;
  spent(): Promise<Spent>;
}

export function createSpending(db: Db, row: SessionRow, hasChildren: boolean): Spending {
  let shared = hasChildren || row.rootSessionId !== null;
  let { steps, costUsd } = row;
  let tokens = row.inputTokens + row.outputTokens;
  const root = row.rootSessionId ?? row.sessionId;
  return {
    add(usage) {
      steps += 1;
      tokens += usage.inputTokens + usage.outputTokens;
      if (usage.costUsd !== null) costUsd = (costUsd ?? 0) + usage.costUsd;
    },
    share() {
      shared = true;
    },
    async spent() {
      if (!shared) return { steps, tokens, costUsd };
      const [sum] = await db.query<Spent>(sql`
        select sum(steps)::float8 as steps, sum(input_tokens + output_tokens)::float8 as tokens,
          sum(cost_usd)::float8 as "costUsd"
        from sessions
        where organization_id = ${row.organizationId} and (session_id = ${root} or root_session_id = ${root})`);
      return sum!;
    },
  };
}
