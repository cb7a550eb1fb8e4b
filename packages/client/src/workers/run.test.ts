import { expect, test } from 'vitest';
import { json, problem, type Seen, serve } from '../../test/fake-service.ts';
import {
  AuthenticationError,
  type RunOptions,
  Signalbox,
  type Sleep,
  TurnLostError,
  type WorkerTurn,
} from '../index.ts';

const apiKey = 'sbk_test_0000000000000000000000000000000000_secret';
const heartbeatMs = 5_000;
const heartbeatTimeoutMs = 10_000;
const claimTimeoutMs = 35_000;
const graceMs = 12_345;

function claimed(more: Partial<WorkerTurn> = {}): WorkerTurn {
  return {
    workerTurnId: 'wtn_1',
    sessionId: 'ses_1',
    agentId: 'agt_1',
    agentVersion: 1,
    environment: 'production',
    queue: 'q',
    turn: 1,
    step: 1,
    cursor: 'turn_1:seq_1',
    instructions: '',
    messages: [],
    tools: [],
    pendingCalls: [],
    outcomes: [],
    outputSchema: null,
    showReasoning: false,
    showToolInput: false,
    limits: {
      maxStepsPerTurn: 20,
      maxOutputTokens: null,
      turnTimeoutSeconds: 600,
      modelOutageSeconds: 900,
      approvalTimeoutSeconds: null,
      continueWhenCut: 0,
      onApprovalTimeout: 'deny',
      compactAtTokens: null,
    },
    metadata: {},
    endUser: null,
    leaseExpiresAt: '2026-01-01T00:00:30.000Z',
    deadlineAt: null,
    ...more,
  };
}

interface Fake {
  /** The results of claims of the queue, in order; after the last one, a claim waits until its caller is gone. */
  claims: WorkerTurn[];
  /** The results of claims of a session's next step, in order. */
  nexts?: WorkerTurn[];
  /** Other responses by the last segment of the path. Default: success. */
  answers?: Record<string, (seen: Seen, count: number) => Response | undefined>;
}

/** A program on a service with a test's responses, and the test's clock. */
async function programOf(
  { claims, nexts = [], answers = {} }: Fake,
  options: Partial<RunOptions> & Pick<RunOptions, 'onTurn'>,
) {
  const counts = new Map<string, number>();
  const { url, seen } = await serve(async (response, request) => {
    const what = request.url.split('/').at(-1)!;
    const count = counts.get(what) ?? 0;
    counts.set(what, count + 1);
    const answer = answers[what]?.(request, count);
    if (answer?.status === 0) return void response.socket?.destroy();
    if (answer) {
      const body = (await answer.json()) as { code?: string };
      return answer.ok ? json(response, 200, body) : problem(response, answer.status, body.code!);
    }
    if (what === 'claim') {
      const claim = (JSON.parse(request.body).sessionId ? nexts : claims).shift();
      return claim ? json(response, 200, { workerTurn: claim }) : undefined;
    }
    if (what === 'heartbeat') return json(response, 200, { leaseExpiresAt: '2026-01-01T00:01:00.000Z' });
    if (what === 'append') return json(response, 200, { cursor: `turn_1:seq_${count + 2}` });
    return json(response, 200, { workerTurnId: 'wtn_1', completed: true, released: true });
  });
  const pauses: number[] = [];
  const beats = new Set<() => void>();
  const graces = new Set<() => void>();
  const sleep: Sleep = async (ms, signal) => {
    signal?.throwIfAborted();
    if (ms === 0) return await new Promise<void>((resolve) => setImmediate(resolve));
    const waiting = ms === heartbeatMs ? beats : ms === graceMs ? graces : undefined;
    const isTimeout = ms === heartbeatTimeoutMs || ms >= claimTimeoutMs;
    if (!waiting && !isTimeout) return void pauses.push(ms);
    await new Promise<void>((resolve, reject) => {
      if (!isTimeout) waiting?.add(resolve);
      const abort = () => {
        waiting?.delete(resolve);
        reject(signal!.reason);
      };
      signal?.addEventListener('abort', abort, { once: true });
    });
  };
  const client = new Signalbox({ apiKey, baseUrl: url, sleep });
  const stopping = new AbortController();
  const errors: unknown[] = [];
  const { signal } = stopping;
  const done = client.workers.run({ queue: 'q', signal, graceMs, onError: (error) => errors.push(error), ...options });
  done.catch(() => {});
  const bodies = (what: string) =>
    seen.filter((one) => one.url.endsWith(`/${what}`)).map(({ body }) => (body ? JSON.parse(body) : undefined));
  /** Resolves after that many requests of a kind. */
  const until = async (what: string, count: number) => {
    while (bodies(what).length < count) await new Promise<void>((resolve) => setImmediate(resolve));
  };
  const pass = (all: Set<() => void>) => {
    for (const resolve of all) resolve();
    all.clear();
  };
  return {
    done,
    errors,
    pauses,
    seen,
    bodies,
    until,
    beat: () => pass(beats),
    /** How many steps have heartbeats. */
    beating: () => beats.size,
    endGrace: () => pass(graces),
    async stop() {
      stopping.abort();
      await done;
    },
  };
}

const refusal = (status: number, code: string) => Response.json({ code }, { status });
const brokenOff = () => Response.error();
const turnLost = () => refusal(409, 'turn_lost');

test('an unreachable service is retried; one that refuses the key is not', async () => {
  const away = await programOf(
    { claims: [claimed()], answers: { claim: (_, count) => (count < 8 ? brokenOff() : undefined) } },
    { onTurn: (turn) => turn.append('here') },
  );
  await away.until('complete', 1);
  await away.stop();
  expect(away.bodies('append')).toEqual([{ deltas: ['here'], after: 'turn_1:seq_1' }]);

  const refused = await programOf(
    { claims: [], answers: { claim: () => refusal(401, 'token_revoked') } },
    { onTurn: () => {} },
  );
  await expect(refused.done).rejects.toBeInstanceOf(AuthenticationError);
});

test('after a lost response, text is sent again for the same position, and a completion with the same key', async () => {
  const lostOnce = (_: Seen, count: number) => (count === 0 ? brokenOff() : undefined);
  const program = await programOf(
    { claims: [claimed()], answers: { append: lostOnce, complete: lostOnce } },
    { onTurn: (turn) => turn.append('once') },
  );
  await program.until('complete', 2);
  await program.stop();
  const [first, again] = program.bodies('append');
  expect(again).toEqual(first);
  const keys = program.seen
    .filter(({ url }) => url.endsWith('/complete'))
    .map(({ headers }) => headers['idempotency-key']);
  expect(keys[0]).toBe(keys[1]);
});

test('a result for a model is the one in the transcript, or the outcome if a summary has replaced it', async () => {
  const outcome = (toolCallId: string, error?: string) => {
    const how = error === undefined ? { status: 'succeeded', output: 1 } : { status: 'unknown', error };
    return { toolCallId, index: 0, tool: 't', ...how } as WorkerTurn['outcomes'][number];
  };
  const kept = { type: 'tool_result' as const, toolCallId: 'call_0', input: { n: 2 }, output: 1 };
  const message = { messageId: 'msg_1', role: 'tool' as const, turn: 1, content: [kept], createdAt: '' };
  let results: unknown;
  const program = await programOf(
    {
      claims: [claimed()],
      nexts: [
        claimed({
          workerTurnId: 'wtn_2',
          step: 2,
          messages: [message],
          outcomes: [outcome('call_0'), outcome('call_1'), outcome('call_2', 'Cut off')],
        }),
      ],
    },
    {
      onTurn: async (turn) => {
        results = await Promise.all([0, 1, 2].map((n) => turn.toolResult('t', { n })));
      },
    },
  );
  await program.until('complete', 2);
  expect(results).toEqual([
    kept,
    { type: 'tool_result', toolCallId: 'call_1', output: 1, outcomeUnknown: false },
    { type: 'tool_result', toolCallId: 'call_2', error: 'Cut off', outcomeUnknown: true },
  ]);
  await program.stop();
});

test('the next step continues its turn also if a claim of any turn gets it', async () => {
  const pending = {
    toolCallId: 'call_0',
    index: 0,
    tool: 'own',
    input: { n: 1 },
  } as WorkerTurn['pendingCalls'][number];
  const outcome = { toolCallId: 'call_0', index: 0, tool: 'own', status: 'succeeded', output: 2 } as const;
  const results: unknown[] = [];
  const program = await programOf(
    {
      claims: [
        claimed(),
        claimed({ workerTurnId: 'wtn_2', pendingCalls: [pending] }),
        claimed({ workerTurnId: 'wtn_3', step: 2, outcomes: [outcome] }),
      ],
    },
    {
      // A claim of any turn follows as soon as this one waits.
      concurrency: 1,
      onTurn: async (turn) => {
        results.push(await turn.callTool('own', { n: 1 }, { run: () => 2 }));
      },
    },
  );
  await program.until('complete', 3);
  expect(results).toEqual([2]);
  expect(program.bodies('complete')[1]).toEqual({ toolResults: [{ toolCallId: 'call_0', output: 2 }] });
  await program.stop();
});

test('calls made together complete one step, with the text before them and its usage; later calls complete the next', async () => {
  const outcome = (index: number, output: unknown) =>
    ({ toolCallId: `call_${index}`, index, tool: 't', status: 'succeeded', output }) as const;
  const program = await programOf(
    {
      claims: [claimed()],
      nexts: [
        claimed({ workerTurnId: 'wtn_2', step: 2, outcomes: [outcome(0, 'A'), outcome(1, 'B')] }),
        claimed({ workerTurnId: 'wtn_3', step: 3, outcomes: [outcome(0, 'C')] }),
      ],
    },
    {
      concurrency: 1,
      onTurn: async (turn) => {
        await turn.append('Let me see. ');
        turn.usage({ inputTokens: 1, outputTokens: 2 });
        turn.usage({ inputTokens: 10, outputTokens: 20, costUsd: 1 });
        const both = await Promise.all([turn.callTool('a', { n: 1 }), turn.callTool('b', { n: 2 })]);
        await turn.append(both.join());
        await turn.append(String(await turn.callTool('c', {})));
      },
    },
  );
  await program.until('complete', 3);
  expect(program.bodies('complete')).toEqual([
    {
      toolCalls: [
        { tool: 'a', input: { n: 1 } },
        { tool: 'b', input: { n: 2 } },
      ],
      usage: { inputTokens: 11, outputTokens: 22, cachedTokens: 0, costUsd: 1 },
    },
    { toolCalls: [{ tool: 'c', input: {} }] },
    {},
  ]);
  expect(program.bodies('append').map(({ deltas }) => deltas)).toEqual([['Let me see. '], ['A,B'], ['C']]);
  await program.stop();
});

test('a heartbeat that finds the turn lost aborts its signal, and later calls of the turn are refused', async () => {
  const reasons: unknown[] = [];
  const begun = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const program = await programOf(
    { claims: [claimed()], answers: { heartbeat: (_, count) => (count === 0 ? undefined : turnLost()) } },
    {
      onTurn: async (turn, { signal }) => {
        begun.resolve();
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
        reasons.push(signal.reason);
        await turn.append('x').catch((error) => reasons.push(error));
        await turn.callTool('t', {}).catch((error) => reasons.push(error));
        ended.resolve();
        throw new Error('nobody hears of this');
      },
    },
  );
  await begun.promise;
  program.beat();
  await program.until('heartbeat', 1);
  while (program.bodies('heartbeat').length < 2) {
    program.beat();
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  await ended.promise;
  await program.stop();
  expect(reasons).toHaveLength(3);
  for (const reason of reasons) expect(reason).toBeInstanceOf(TurnLostError);
  expect(program.bodies('complete')).toEqual([]);
  expect(program.errors).toEqual([]);
});

test('if the service stays unreachable during a completion, the turn is lost but does not fail', async () => {
  const program = await programOf(
    { claims: [claimed()], answers: { append: brokenOff } },
    {
      onTurn: async (turn) => {
        await turn.append('lost');
        await turn.callTool('t', {});
      },
    },
  );
  await program.until('append', 8);
  await program.stop();
  expect(program.bodies('append')).toHaveLength(8);
  expect(program.bodies('complete')).toEqual([]);
});

test('a claim that does not follow the program’s last step starts a new onTurn', async () => {
  const steps: number[] = [];
  const program = await programOf(
    { claims: [claimed()], nexts: [claimed({ workerTurnId: 'wtn_2', step: 4 })] },
    {
      concurrency: 1,
      onTurn: async (turn) => {
        steps.push(turn.step);
        if (turn.step === 1) await turn.callTool('t', {});
      },
    },
  );
  await program.until('complete', 2);
  await program.stop();
  expect(steps).toEqual([1, 4]);
  expect(program.errors).toEqual([]);
});

test('the next step is claimed before the current one is completed, so no other worker gets it', async () => {
  const steps: number[] = [];
  let isAsked = false;
  const program = await programOf(
    {
      claims: [claimed()],
      nexts: [claimed({ workerTurnId: 'wtn_2', step: 2 })],
      answers: {
        claim: ({ body }) => {
          isAsked ||= JSON.parse(body).sessionId !== undefined;
          return undefined;
        },
        complete: () => (isAsked ? undefined : refusal(503, 'unavailable')),
      },
    },
    {
      concurrency: 1,
      onTurn: async (turn) => {
        await turn.callTool('t', {}).catch(() => {});
        steps.push(turn.step);
      },
    },
  );
  while (steps.length === 0) await new Promise<void>((resolve) => setImmediate(resolve));
  await program.stop();
  expect(steps).toEqual([2]);
});

test('a function’s result that the service refuses becomes an error, which says that the call has ended', async () => {
  const call = { toolCallId: 'call_1', index: 0, tool: 'big', input: {} };
  const program = await programOf(
    {
      claims: [claimed({ pendingCalls: [call] })],
      answers: { complete: (_, count) => (count === 0 ? refusal(413, 'payload_too_large') : undefined) },
    },
    { onTurn: () => {}, tools: { big: () => 'x'.repeat(2_000) } },
  );
  await program.until('complete', 2);
  await program.stop();
  expect(program.bodies('complete')[1]).toEqual({
    toolResults: [
      { toolCallId: 'call_1', error: "The call has ended, but its result can't be sent: It is payload_too_large." },
    ],
  });
});

test('a function’s result is cleaned of what the service refuses', async () => {
  const results: Record<string, () => unknown> = {
    nul: () => ({ text: 'a\0b', list: ['\ud83d'] }),
    none: () => undefined,
    code: () => () => 1,
    date: () => new Date('2026-01-31T09:30:00Z'),
    big: () => 10n,
    thrown: () => {
      throw new Error('\0');
    },
  };
  const calls = Object.keys(results).map((tool, index) => ({ toolCallId: tool, index, tool, input: {} }));
  const program = await programOf({ claims: [claimed({ pendingCalls: calls })] }, { onTurn: () => {}, tools: results });
  await program.until('complete', 1);
  await program.stop();
  expect(program.bodies('complete')[0].toolResults).toEqual([
    { toolCallId: 'nul', output: { text: 'ab', list: ['\ufffd'] } },
    { toolCallId: 'none', output: null },
    { toolCallId: 'code', output: null },
    { toolCallId: 'date', output: '2026-01-31T09:30:00.000Z' },
    { toolCallId: 'big', error: 'Do not know how to serialize a BigInt' },
    { toolCallId: 'thrown', error: 'It failed without saying why.' },
  ]);
});

test('a completion that the service refuses fails the turn with the reason, and its usage is counted', async () => {
  const program = await programOf(
    {
      claims: [claimed()],
      answers: { complete: (_, count) => (count === 0 ? refusal(400, 'invalid_request') : undefined) },
    },
    {
      onTurn: (turn) => {
        turn.usage({ inputTokens: 1, outputTokens: 2 });
        return { stopReason: 'stop' as 'endTurn' };
      },
    },
  );
  await program.until('complete', 2);
  await program.stop();
  const usage = { inputTokens: 1, outputTokens: 2 };
  expect(program.bodies('complete')).toEqual([
    { stopReason: 'stop', usage },
    { error: { message: expect.stringContaining('invalid_request') }, usage },
  ]);
  expect(program.errors).toHaveLength(1);
});

test('a turn that the service refuses to end is abandoned: its lease expires, and its place is free', async () => {
  const program = await programOf(
    {
      claims: [claimed(), claimed({ workerTurnId: 'wtn_2', sessionId: 'ses_2' })],
      answers: {
        complete: ({ url }) => (url.includes('wtn_1') ? refusal(403, 'insufficient_permission') : undefined),
      },
    },
    { concurrency: 1, onTurn: () => {} },
  );
  await program.until('complete', 3);
  while (program.beating() > 0) await new Promise<void>((resolve) => setImmediate(resolve));
  await program.stop();
  expect(program.bodies('release')).toEqual([]);
  expect(program.errors).toHaveLength(2);
});

test('values that are not text or not a number are refused in the call that passes them', async () => {
  const thrown: unknown[] = [];
  const program = await programOf(
    { claims: [claimed()] },
    {
      onTurn: async (turn) => {
        await turn.append(undefined as unknown as string).catch((error) => thrown.push(error));
        for (const wrong of [
          { inputTokens: Number.NaN },
          { outputTokens: 1.5 },
          { cachedTokens: -1 },
          { costUsd: -1 },
        ]) {
          try {
            turn.usage({ inputTokens: 0, outputTokens: 0, ...wrong });
          } catch (error) {
            thrown.push(error);
          }
        }
      },
    },
  );
  await program.until('complete', 1);
  await program.stop();
  expect(thrown.map(String)).toEqual([
    'TypeError: append takes a string',
    ...['inputTokens', 'outputTokens', 'cachedTokens'].map(
      (name) => `TypeError: usage: ${name} must be a whole number, 0 or more`,
    ),
    'TypeError: usage: costUsd must be a number, 0 or more',
  ]);
  expect(program.bodies('complete')).toEqual([{}]);
});

test('calls of a program that is gone are run by this program’s functions; without one they fail', async () => {
  const calls = ['mine', 'toString'].map((tool, index) => ({
    toolCallId: `call_${index}`,
    index,
    tool,
    input: { n: 1 },
  }));
  const program = await programOf(
    { claims: [claimed({ pendingCalls: calls })] },
    { onTurn: () => {}, tools: { mine: ({ n }: { n: number }, { toolCallId }) => `${toolCallId} ${n}` } },
  );
  await program.until('complete', 1);
  await program.stop();
  expect(program.bodies('complete')).toEqual([
    {
      toolResults: [
        { toolCallId: 'call_0', output: 'call_0 1' },
        { toolCallId: 'call_1', error: 'The worker has no function for the tool "toString".' },
      ],
    },
  ]);
});

test('when it stops, steps that end in time are completed, and the others are released', async () => {
  const begun = Promise.withResolvers<void>();
  const mayEnd = Promise.withResolvers<void>();
  const program = await programOf(
    { claims: [claimed(), claimed({ workerTurnId: 'wtn_2', sessionId: 'ses_2' })] },
    {
      onTurn: async (turn) => {
        if (turn.sessionId === 'ses_2') {
          begun.resolve();
          await new Promise(() => {}); // ignores the signal
        }
        await mayEnd.promise;
        await turn.append('in time');
      },
    },
  );
  await begun.promise;
  const stopped = program.stop();
  mayEnd.resolve();
  await program.until('complete', 1);
  expect(program.bodies('release')).toHaveLength(0);
  program.endGrace();
  await stopped;
  expect(program.seen.filter(({ url }) => url.endsWith('/release')).map(({ url }) => url)).toEqual([
    '/api/v1/worker_turns/wtn_2/release',
  ]);
});

test('if too many turns wait, the one that waits longest is dropped and continues elsewhere', async () => {
  const count = 101;
  const forgotten: string[] = [];
  const claims = Array.from({ length: count }, (_, index) =>
    claimed({ workerTurnId: `wtn_${index}`, sessionId: `ses_${index}` }),
  );
  const many = await programOf(
    { claims },
    {
      concurrency: 1,
      onTurn: async (turn) => {
        await turn.callTool('wait', {}).catch((error) => {
          expect(error).toBeInstanceOf(TurnLostError);
          forgotten.push(turn.sessionId);
          throw error;
        });
      },
    },
  );
  await many.until('complete', count);
  while (forgotten.length === 0) await new Promise<void>((resolve) => setImmediate(resolve));
  expect(forgotten).toEqual(['ses_0']);
  await many.stop();
  expect(forgotten).toHaveLength(count);
});

test('a lost turn frees its place, even if onTurn ignores its signal', async () => {
  const begun: string[] = [];
  const program = await programOf(
    {
      claims: [claimed(), claimed({ workerTurnId: 'wtn_2', sessionId: 'ses_2' })],
      answers: { heartbeat: turnLost },
    },
    {
      concurrency: 1,
      onTurn: async ({ sessionId }) => {
        begun.push(sessionId);
        if (sessionId === 'ses_1') await new Promise(() => {});
      },
    },
  );
  while (begun.length < 2) {
    program.beat();
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  expect(begun).toEqual(['ses_1', 'ses_2']);
  await program.until('complete', 1);
  const stopped = program.stop();
  while (await Promise.race([stopped.then(() => false), new Promise((resolve) => setImmediate(() => resolve(true)))])) {
    program.endGrace();
  }
  expect(program.bodies('release')).toEqual([]);
});
