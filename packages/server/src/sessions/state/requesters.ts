// The requesters of a session: every caller that gave it input. Approvals can exclude them (approvals/approvers.ts).
import sql, { type Sql } from 'sql-template-tag';
import type { Context } from '../../lib/context.ts';
import { identitiesOf } from '../../lib/identities.ts';

/** Records that the caller gave the session input. The transaction has locked the session's row. */
export function addRequester(
  ctx: Pick<Context, 'person' | 'keyId'>,
  owner: { organizationId: string; sessionId: string },
): Sql {
  const caller = identitiesOf(ctx);
  return sql`
    update sessions set requesters = requesters || ${caller}::text[]
    where organization_id = ${owner.organizationId} and session_id = ${owner.sessionId}
      and not requesters @> ${caller}::text[]`;
}
