// The turn machine by itself: what it yields with given models and tools.
import { expect, test } from 'vitest';
import type { Definition } from '../agents/agents.ts';
import { newModelCall } from '../session-rows/operations.ts';
import type { RunsAs, TurnTool } from '../tools/tool/tool.ts';
import { runTurn, type TurnPorts, type TurnState } from './turn.ts';

function toolsOf(runsAs: RunsAs, names: string[]): TurnTool[] {
  const source = { type: runsAs === 'client' ? 'client' : 'http' } as never;
  return names.map((name) => ({
    name,
    description: '',
    inputSchema: { type: 'object' },
    approval: 'never',
    by: null,
    repeatable: true,
    runsAs,
    source,
  }));
}

function stateWith(tools: TurnTool[]): TurnState {
  return {
    organizationId: 'o',
    sessionId: '',
    environment: 'production',
    endUser: null,
    turn: 1,
    definition: { model: {}, tools: [], outputSchema: null, limits: { maxStepsPerTurn: 20 } } as unknown as Definition,
    models: [{ provider: 'scripted', model: 'test' }],
    tools,
    unavailable: [],
    grantedTools: [],
    leftOut: null,
    transcript: [],
    compaction: null,
    reportedTokens: null,
    operations: [newModelCall(1, 1, 1)],
    modelCalls: 0,
    shownText: '',
    underWay: new Map(),
  };
}

/** The model calls every tool once. */
const ports: TurnPorts = {
  askModel: () => expect.unreachable(),
  async *ask({ tools }) {
    for (const { name } of tools) yield { type: 'toolCall', name, input: {} };
    yield { type: 'finish', reason: 'toolCalls', usage: { inputTokens: 0, outputTokens: 0, cachedTokens: 0 } };
  },
  run: async () => ({ output: 'done' }),
  refusal: async () => undefined,
  clock: { now: () => new Date(0), sleep: async () => {} },
  deadline: new Date(600_000),
  random: () => 0,
  inboxCame: () => new Promise(() => {}),
  hasQueued: () => false,
};

test('calls that end at the same time all end before the next step', async () => {
  const state = stateWith(toolsOf('here', ['a', 'b', 'c']));
  const ended: (string | null)[] = [];
  for await (const event of runTurn(state, ports, new AbortController().signal)) {
    if (event.type === 'callEnded') ended.push(event.call.tool);
    if (event.type === 'stepEnded') break;
  }
  expect(ended.sort()).toEqual(['a', 'b', 'c']);
});

test('a turn that is stopped just before it waits does not wait', async () => {
  const stopping = new AbortController();
  const waited: string[] = [];
  const run = async () => {
    for await (const event of runTurn(stateWith(toolsOf('client', ['a'])), ports, stopping.signal)) {
      if (event.type !== 'wait') continue;
      waited.push(event.type);
      if (waited.length > 1) break;
      // As if the runner could not release the session, because the stop arrived first.
      stopping.abort(new Error('stopped'));
    }
  };
  await expect(run()).rejects.toThrow('stopped');
  expect(waited).toEqual(['wait']);
});

test.each([
  ['that must not be repeated is unknown', false, { status: 'unknown', error: 'Cut off.' }],
  ['that may be repeated is an error like others', true, { status: 'failed', error: 'Cut off.' }],
])('the outcome of a call that was sent and cut off and %s', async (_title, repeatable, ended) => {
  const tools = toolsOf('here', ['a']).map((tool) => ({ ...tool, repeatable }));
  const cutOff: TurnPorts = { ...ports, run: async () => ({ error: 'Cut off.', outcomeUnknown: true }) };
  for await (const event of runTurn(stateWith(tools), cutOff, new AbortController().signal)) {
    if (event.type === 'callEnded') expect(event.call).toMatchObject(ended);
    if (event.type !== 'stepEnded') continue;
    expect(event.results).toMatchObject([{ error: 'Cut off.' }]);
    expect('outcomeUnknown' in event.results![0]!).toBe(!repeatable);
    return;
  }
  expect.unreachable();
});

test('a worker’s submission is accepted even if the budget was used up in the meantime, because it is spent already', async () => {
  const state = stateWith([]);
  const model = { provider: 'worker' as const, queue: 'q' };
  Object.assign(state.definition, { model });
  state.models = [model];
  state.operations[0]!.output = { toolCalls: [], stopReason: 'endTurn' };
  const refusing: TurnPorts = { ...ports, refusal: async () => 'budgetReached' };
  const events: string[] = [];
  for await (const { type } of runTurn(state, refusing, new AbortController().signal)) events.push(type);
  expect(events).toEqual(['responded']);
});

const LONG = 'a'.repeat(1024 * 1024);

test('results of a step that have more than 4 MiB together do not end the turn', async () => {
  const state = stateWith(toolsOf('here', ['a', 'b', 'c', 'd', 'e']));
  const run = async () => ({ output: LONG });
  for await (const event of runTurn(state, { ...ports, run }, new AbortController().signal)) {
    if (event.type !== 'stepEnded') continue;
    const shown = event.results!.map((part) => part.type === 'tool_result' && part.output === LONG);
    expect(shown).toEqual([true, true, true, false, false]);
    return;
  }
  expect.unreachable();
});
