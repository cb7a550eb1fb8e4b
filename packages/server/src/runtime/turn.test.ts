// The turn machine alone: what it yields for given models and tools.
import type { Tool } from '@signalbox/contract';
import { expect, test } from 'vitest';
import type { Definition } from '../agents/agents.ts';
import { newModelCall } from '../sessions/operations.ts';
import { runTurn, type TurnPorts, type TurnState } from './turn.ts';

test('calls that end in the same instant each have their end, before the next step', async () => {
  const tools = ['a', 'b', 'c'].map((name) => ({
    name,
    description: '',
    inputSchema: { type: 'object' },
    approval: 'never' as const,
    repeatable: true,
    source: { type: 'http' } as Tool,
  }));
  const state: TurnState = {
    organizationId: 'o',
    environment: 'production',
    turn: 1,
    definition: { model: {}, outputSchema: null, limits: { maxStepsPerTurn: 20 } } as unknown as Definition,
    tools,
    unavailable: [],
    grantedTools: [],
    budget: null,
    transcript: [],
    operations: [newModelCall(1, 1, 1)],
    modelCalls: 0,
    shownText: '',
    underWay: new Map(),
  };
  const ports: TurnPorts = {
    async *ask() {
      for (const { name } of tools) yield { type: 'toolCall', name, input: {} };
      yield { type: 'finish', reason: 'toolCalls', usage: { inputTokens: 0, outputTokens: 0, cachedTokens: 0 } };
    },
    run: async () => ({ output: 'done' }),
    spent: async () => ({ steps: 0, tokens: 0, costUsd: null }),
    sleep: async () => {},
    random: () => 0,
    inboxCame: () => new Promise(() => {}),
  };

  const ended: (string | null)[] = [];
  for await (const event of runTurn(state, ports, new AbortController().signal)) {
    if (event.type === 'callEnded') ended.push(event.call.tool);
    if (event.type === 'stepEnded') break;
  }

  expect(ended.sort()).toEqual(['a', 'b', 'c']);
});
