// The list of approvals. It is merged as the list of sessions is (sessions/reading/list.ts), so its cost depends on the page's length.
import { approvalStatuses, type Input, type Result } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import type { Context } from '../lib/context.ts';
import { uuidOf } from '../lib/ids.ts';
import { firstBytes, pageOf, pageRequest } from '../lib/page.ts';
import { type ApprovalRow, selectApprovals, viewApproval } from './approvals.ts';
import { deciderOf } from './approvers.ts';
import { contextIf } from './context.ts';

/** Approvals of all sessions, oldest first by default. */
export async function listApprovals(ctx: Context, input: Input<'listApprovals'>): Promise<Result<'listApprovals'>> {
  const { organizationId } = ctx;
  const { status, environment, sessionId } = input;
  const ofAgent = input.agentId === undefined ? empty : sql`and a.agent_id = ${uuidOf('agt', input.agentId)}`;
  const order = input.order ?? 'asc';
  const request = pageRequest(`approvals:${order}:${organizationId}`, input);
  const page: Page = {
    organizationId,
    after:
      request.after === undefined
        ? empty
        : order === 'desc'
          ? sql`and a.operation_id < ${request.after}`
          : sql`and a.operation_id > ${request.after}`,
    order: order === 'desc' ? sql`desc` : empty,
    limit: request.limit + 1,
    ofAgent,
    more: contextIf(organizationId, input),
  };
  const isByPlace =
    sessionId === undefined && (status !== undefined || environment !== undefined || input.agentId !== undefined);
  const statement = isByPlace
    ? byPlace(page, environment, status ? [status] : approvalStatuses)
    : sql`
        ${selectApprovals(page)} where a.organization_id = ${organizationId} ${page.after} ${ofAgent}
          ${status === undefined ? empty : sql`and a.status = ${status}`}
          ${environment === undefined ? empty : sql`and a.environment = ${environment}`}
          ${sessionId === undefined ? empty : sql`and a.session_id = ${uuidOf('ses', sessionId)}`}
        order by a.operation_id ${page.order} limit ${page.limit}`;
  const bytes = sql`octet_length(concat(input, "editedInput", "inputSchema", decisions))`;
  const rows = await ctx.db.query<ApprovalRow>(
    firstBytes(statement, { order: sql`"operationId" ${page.order}`, bytes }),
  );
  const caller = deciderOf(ctx);
  return pageOf(
    request,
    rows,
    (row) => row.operationId,
    (row) => viewApproval(row, caller),
  );
}

interface Page {
  organizationId: string;
  after: Sql;
  order: Sql;
  limit: number;
  ofAgent: Sql;
  more: Sql | undefined;
}

function byPlace(
  { organizationId, after, order, limit, ofAgent, more }: Page,
  environment: string | undefined,
  statuses: readonly string[],
): Sql {
  const places =
    environment === undefined
      ? sql`
          (select a.environment from approvals a where a.organization_id = ${organizationId} ${ofAgent}
          order by a.environment limit 1)
          union all
          select (
            select a.environment from approvals a
            where a.organization_id = ${organizationId} ${ofAgent} and a.environment > p.environment
            order by a.environment limit 1)
          from places p where p.environment is not null`
      : sql`select ${environment}::text`;
  return sql`
    with recursive places(environment) as (${places})
    ${selectApprovals({
      more,
      from: sql`(
      select x.* from places p
      cross join unnest(${[...statuses]}::text[]) k(status)
      cross join lateral (
        select * from approvals a
        where a.organization_id = ${organizationId} and a.environment = p.environment and a.status = k.status ${after} ${ofAgent}
        order by a.operation_id ${order} limit ${limit}) x
      where p.environment is not null
      order by x.operation_id ${order} limit ${limit})`,
    })}
    order by a.operation_id ${order}`;
}
