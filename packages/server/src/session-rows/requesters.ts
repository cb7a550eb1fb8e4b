// The requesters of a session: every caller that gave it input. Approvals can exclude them (approvals/approvers.ts).
import sql, { type Sql } from 'sql-template-tag';
import type { Context } from '../lib/context.ts';
import { identitiesOf } from '../lib/identities.ts';

/** Records that those who gave a child input have given it to its parent. The transaction has locked the parent's row. */
export function addRequestersOfChild(
  child: { organizationId: string; sessionId: string },
  parent: { sessionId: string },
): Sql {
  return sql`
    update sessions p set requesters = p.requesters || array(
      select r.requester from unnest(c.requesters) r(requester) where r.requester <> all(p.requesters))
    from sessions c
    where p.organization_id = ${child.organizationId} and p.session_id = ${parent.sessionId}
      and c.organization_id = ${child.organizationId} and c.session_id = ${child.sessionId}
      and not p.requesters @> c.requesters`;
}

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
