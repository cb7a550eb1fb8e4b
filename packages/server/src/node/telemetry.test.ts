// What a span costs when it has no content.
import { expect, test } from 'vitest';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { newUuid } from '../lib/ids.ts';
import { createLog } from '../lib/log.ts';
import type { AskModel, ModelCall } from '../models/model/model.ts';
import { ModelFailure } from '../models/model/model.ts';
import { createMetrics } from '../observe/metrics.ts';
import { createTracing } from '../observe/tracing.ts';
import type { RunTool, ToolRun } from '../tools/tool/tool.ts';
import { withModelTelemetry, withToolTelemetry } from './telemetry.ts';
import type { TurnContext } from './turn-context.ts';

const answers: AskModel = async function* ask() {
  yield { type: 'text', delta: 'hello' };
};
const skips: AskModel = async function* ask() {
  await Promise.reject(new ModelFailure('model_unavailable', 'It is down.', { retryable: true, isSkipped: true }));
  yield { type: 'text', delta: '' };
};

test.each([
  { takesContent: true, flags: '01', ask: answers, reads: ['instructions', 'transcript', 'tools', 'input', 'output'] },
  { takesContent: true, flags: '01', ask: skips, reads: ['input', 'output'] },
  { takesContent: true, flags: '00', ask: answers, reads: [] },
  { takesContent: false, flags: '01', ask: answers, reads: [] },
])('content is read only for a span that takes it, and for a call that was made: $reads', async (row) => {
  const reads: string[] = [];
  const watched = <T>(values: T, ...names: (keyof T & string)[]): T => {
    const watch = (name: keyof T & string) => ({
      get() {
        reads.push(name);
        return values[name];
      },
      enumerable: true,
    });
    return Object.defineProperties({ ...values }, Object.fromEntries(names.map((name) => [name, watch(name)])));
  };
  const context = contextOf(row);
  const call = { config: { provider: 'scripted' }, limits: {}, instructions: '', transcript: [], tools: [] };
  const observed = withModelTelemetry(context, row.ask)(
    watched(call as unknown as ModelCall, 'instructions', 'transcript', 'tools'),
    new AbortController().signal,
  );
  await ended(observed).catch(() => {});
  const run: RunTool = async () => watched({ output: 1 }, 'output');
  const toolCall = { tool: { name: 'look', source: { type: 'http' } }, operationId: 'op_01', input: {} };
  // Inherited, because a copy of the call would read its own.
  const input = Object.create(watched({ input: {} }, 'input')) as object;
  const { input: _, ...rest } = toolCall;
  await withToolTelemetry(context, run)(Object.assign(input, rest) as unknown as ToolRun, new AbortController().signal);
  expect(reads.toSorted()).toEqual(row.reads.toSorted());
});

async function ended(events: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of events);
}

function contextOf({ takesContent, flags }: { takesContent: boolean; flags: string }): TurnContext {
  const clock = createManualClock();
  const collector = { otlpEndpoint: 'http://127.0.0.1:1', otlpHeaders: {}, otlpCompression: 'none' as const };
  const log = createLog({ level: 'silent' });
  const tracing = createTracing({ clock, log }, { ...collector, otlpContent: takesContent });
  const none = () => {};
  const [organizationId, agentId, sessionId] = [newUuid(), newUuid(), newUuid()];
  return {
    platform: { clock, tracing, metrics: createMetrics(), analytics: { observe: none, count: none } },
    session: { row: { organizationId, agentId, sessionId, environment: 'production', pinnedVersion: null } },
    state: { definition: { name: 'A', model: { provider: 'scripted' } } },
    span: { traceParent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-${flags}`, end: none },
  } as unknown as TurnContext;
}
