// Mocks of a draft: calls of a mocked tool are not run, whatever the type of the tool. Each gets a result that the draft has for it.
//
// The model sees the tool as it is. A mocked call is stored, shown and recovered like any call that a node runs.
import type { ToolMock } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Queryable } from '../../db/db.ts';
import { uuidOf } from '../../lib/ids.ts';
import type { MockSource, RunTool, TurnTool } from './tool.ts';

/** The tools, with mocks in place of those that the definition mocks. */
export function mockedTools(
  tools: readonly TurnTool[],
  mocks: Readonly<Record<string, ToolMock>> | undefined,
): TurnTool[] {
  if (!mocks) return [...tools];
  return tools.map((tool) => {
    // That of an MCP server is for all of its tools.
    const mock = mocks[tool.name] ?? (tool.source.type === 'mcp' ? mocks[tool.source.name] : undefined);
    if (!mock) return tool;
    const { name, description, inputSchema, approval, by } = tool;
    const asks = mock.approval === 'keep' ? { approval, by } : { approval: 'never' as const, by: null };
    return {
      name,
      description,
      inputSchema,
      ...asks,
      repeatable: true,
      runsAs: 'here',
      source: { type: 'mock', mock },
    };
  });
}

/** Gives calls of mocked tools their results, and runs the others. */
export function withMocks(db: Queryable, run: RunTool): RunTool {
  return async (call, signal) => {
    const { source } = call.tool;
    if (source.type !== 'mock') return run(call, signal);
    const { results } = (source as MockSource).mock;
    const index = results.length === 1 ? 0 : await callsBefore(db, call);
    const { output = null, error } = results[Math.min(index, results.length - 1)]!;
    return error === undefined ? { output } : { error };
  };
}

/** How many calls of the tool the model requested in this session before this one. A node that takes it over counts the same. */
async function callsBefore(
  db: Queryable,
  { organizationId, operationId }: { organizationId: string; operationId: string },
): Promise<number> {
  const [row] = await db.query<{ before: number }>(sql`
    select count(o.operation_id)::int as before from operations c
    left join operations o on o.organization_id = c.organization_id and o.session_id = c.session_id and o.kind = 'tool'
      and o.tool = c.tool and (o.turn, o.step, o.index) < (c.turn, c.step, c.index)
    where c.organization_id = ${organizationId} and c.operation_id = ${uuidOf('op', operationId)}`);
  return row!.before;
}
