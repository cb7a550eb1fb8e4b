// A decision's grant for the rest of the session takes effect at the same time as the decision.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listApprovals } from '../../src/approvals/list.ts';
import { resolveApproval } from '../../src/approvals/resolve.ts';
import { sendMessage } from '../../src/sessions/messages.ts';
import { answering, createWorld, httpTool, type World } from '../support/session-world.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

test.each([
  ['once', {}],
  ['always', { scope: 'session' as const }],
])(
  'with the policy %s, a decision that a node finds while it parks the session grants later calls',
  async (approval, scope) => {
    // The wake-ups of this node do not reach the one that runs the session, which finds the decision when its commit fails.
    const there = { ...world.ctx, ...(await world.anotherNode()) };
    const asked: string[] = [];
    let sessionId = '';
    async function approve(): Promise<void> {
      const { data } = await listApprovals(world.ctx, { sessionId, status: 'pending' });
      for (const { operationId } of data) {
        asked.push(operationId);
        await resolveApproval(there, { operationId, decision: 'approved', ...scope });
      }
    }
    await world.work({
      ask: answering([
        {
          calls: [
            ['pay', {}],
            ['slow', {}],
          ],
        },
        {
          calls: [
            ['pay', {}],
            ['slow', {}],
          ],
        },
        { text: 'ok' },
      ]),
      run: async ({ tool }) => {
        if (tool.name === 'slow') await approve();
        return { output: tool.name };
      },
    });
    const agentId = await world.agent([httpTool('pay', { approval }), httpTool('slow')]);
    sessionId = await world.open(agentId, { input: undefined });
    await sendMessage(world.ctx, { sessionId, content: 'go' });
    await world.until(sessionId, (chunk) => chunk.type === 'turn.completed');
    expect(asked).toHaveLength(1);
  },
);
