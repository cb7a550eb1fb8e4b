import { describe, expect, test } from 'vitest';
import { createAvailability } from './availability.ts';
import { type AskModel, type ModelCall, type ModelEvent, ModelFailure } from './model/model.ts';

const finish: ModelEvent = {
  type: 'finish',
  reason: 'endTurn',
  usage: { inputTokens: 1, outputTokens: 1, cachedTokens: 0 },
};

/** Calls of one model at a time that the test sets. */
function setUp() {
  let now = 0;
  let asked = 0;
  const askedAt: number[] = [];
  let outcome: 'ok' | ModelFailure | Promise<never> = 'ok';
  let says = '';
  const responded: string[] = [];
  let comeBack: (model: string) => void = () => {};
  const ask: AskModel = async function* () {
    asked += 1;
    askedAt.push(now);
    if (says !== '') yield { type: 'text', delta: says };
    if (outcome instanceof Promise) await outcome;
    if (outcome instanceof ModelFailure) throw outcome;
    yield finish;
  };
  const limited = createAvailability(
    {
      now: () => new Date(now),
      sleep: async (ms) => {
        now += ms;
      },
    },
    {
      responded: (_, model) => responded.push(model),
      onElsewhere: (listener) => {
        comeBack = listener;
      },
    },
  )(ask);
  const unabortable = new AbortController().signal;
  return {
    set: (next: typeof outcome) => {
      outcome = next;
    },
    pass: (ms: number) => {
      now += ms;
    },
    say: (text: string) => {
      says = text;
    },
    asked: () => asked,
    askedAt,
    /** The models that were reported to be back, once for each call that showed it. */
    responded,
    /** Another node reports this model. */
    comeBack: (model: string) => comeBack(model),
    /** 'ok', or how it failed. */
    async call(more: object = {}, signal: AbortSignal = unabortable): Promise<'ok' | ModelFailure> {
      const config = { provider: 'openai', model: 'm' };
      const call = { organizationId: 'o', environment: 'e', config, ...more } as unknown as ModelCall;
      try {
        // As the turn machine does, it takes nothing after the last event.
        for await (const { type } of limited(call, signal)) if (type === 'finish') return 'ok';
        throw new Error('It ended without a finish');
      } catch (error) {
        if (error instanceof ModelFailure) return error;
        throw error;
      }
    },
  };
}

const unavailable = new ModelFailure('model_unavailable', 'It is down.', { retryable: true });
const timeout = new ModelFailure('model_timeout', 'It is silent.', { retryable: true });

test('after five failures in a row a model is not called for 15 seconds, and calls fail as the last one did', async () => {
  const model = setUp();
  model.set(unavailable);
  for (let n = 0; n < 5; n += 1) expect(await model.call()).toBe(unavailable);
  model.set('ok');
  model.pass(14_999);
  expect(await model.call()).toMatchObject({
    code: 'model_unavailable',
    message: 'It is down.',
    retryable: true,
    retryAfterMs: 1,
    isSkipped: true,
  });
  expect(model.asked()).toBe(5);
  model.pass(1);
  expect(await model.call()).toBe('ok');
  expect(await model.call()).toBe('ok');
});

test('a response between failures starts the count again', async () => {
  const model = setUp();
  for (let n = 0; n < 3; n += 1) {
    model.set(unavailable);
    for (let m = 0; m < 4; m += 1) await model.call();
    model.set('ok');
    expect(await model.call()).toBe('ok');
  }
});

test('one time-out is enough, because each costs minutes', async () => {
  const model = setUp();
  model.set(timeout);
  await model.call();
  expect(await model.call()).toMatchObject({ code: 'model_timeout', isSkipped: true });
  expect(model.asked()).toBe(1);
});

test('after the pause one call tries the model, and the others still fail until it has responded', async () => {
  const model = setUp();
  model.set(timeout);
  await model.call();
  model.pass(15_000);
  const stop = new AbortController();
  const hangs = new Promise<never>((_, reject) => {
    stop.signal.addEventListener('abort', () => reject(stop.signal.reason));
  });
  model.set(hangs);
  const trial = model.call({}, stop.signal);
  expect(await model.call()).toMatchObject({ isSkipped: true, retryAfterMs: 15_000 });
  expect(model.asked()).toBe(2);

  // A trial that is stopped with its turn leaves it to the next call.
  stop.abort(new ModelFailure('stopped', '', { retryable: false }));
  await trial;
  model.set('ok');
  expect(await model.call()).toBe('ok');
});

test('each failed trial doubles the pause up to 150 seconds, and a provider may ask for longer', async () => {
  const model = setUp();
  model.set(timeout);
  await model.call();
  for (const seconds of [15, 30, 60, 120, 150, 150]) {
    model.pass(seconds * 1_000 - 1);
    expect(await model.call()).toMatchObject({ isSkipped: true });
    model.pass(1);
    expect(await model.call()).toBe(timeout);
  }
  model.pass(150_000);
  const asking = new ModelFailure('model_unavailable', 'It is down.', { retryable: true, retryAfterMs: 600_000 });
  model.set(asking);
  await model.call();
  expect(await model.call()).toMatchObject({ isSkipped: true, retryAfterMs: 600_000 });
});

describe('a call that a person waits for', () => {
  const awaited = { isAwaited: true };

  test('tries a model within its pause, and the others follow when it has responded', async () => {
    const model = setUp();
    model.set(timeout);
    await model.call();
    model.set('ok');
    model.pass(1_000);
    expect(await model.call()).toMatchObject({ isSkipped: true });
    expect(await model.call(awaited)).toBe('ok');
    expect(await model.call()).toBe('ok');
  });

  test('waits until the last trial was a second ago; meanwhile, others fail at once', async () => {
    const model = setUp();
    model.set(timeout);
    for (let n = 0; n < 5; n += 1) {
      const calls = Array.from({ length: 10 }, () => model.call(awaited));
      const failures = (await Promise.all(calls)).filter((failure) => failure !== 'ok' && failure.isSkipped);
      if (n > 0) expect(failures).toHaveLength(9);
    }
    expect([...new Set(model.askedAt)]).toEqual([0, 1_000, 2_000, 3_000, 4_000]);
  });

  test('tries it while no other call does', async () => {
    const model = setUp();
    model.set(timeout);
    await model.call();
    const stop = new AbortController();
    model.set(new Promise<never>((_, reject) => stop.signal.addEventListener('abort', () => reject(timeout))));
    model.pass(1_000);
    const trial = model.call(awaited);
    model.pass(5_000);
    expect(await model.call(awaited)).toMatchObject({ isSkipped: true, retryAfterMs: 9_000 });
    stop.abort();
    expect(await trial).toBe(timeout);
    expect(model.asked()).toBe(2);
  });

  test('does not lengthen the pause by its failure, unless the provider asks for it', async () => {
    const model = setUp();
    model.set(timeout);
    await model.call();
    model.set(unavailable);
    for (let n = 0; n < 10; n += 1) {
      model.pass(1_000);
      expect(await model.call(awaited)).toBe(unavailable);
    }
    expect(await model.call()).toMatchObject({ code: 'model_unavailable', isSkipped: true, retryAfterMs: 5_000 });
    model.pass(1_000);
    model.set(new ModelFailure('model_unavailable', 'It is down.', { retryable: true, retryAfterMs: 60_000 }));
    await model.call(awaited);
    expect(await model.call()).toMatchObject({ isSkipped: true, retryAfterMs: 60_000 });
  });
});

describe('a model that is back', () => {
  async function untilPaused(model: ReturnType<typeof setUp>) {
    model.set(timeout);
    await model.call();
    model.pass(15_000);
  }

  test('is called by all as soon as the trial has begun to respond, and is reported once', async () => {
    const model = setUp();
    await untilPaused(model);
    model.say('Hel');
    const stop = new AbortController();
    model.set(new Promise<never>((_, reject) => stop.signal.addEventListener('abort', () => reject(timeout))));
    const trial = model.call();
    await expect.poll(() => model.responded).toHaveLength(1);
    model.set('ok');
    expect(await model.call()).toBe('ok');
    stop.abort();
    await trial;
    expect(model.responded).toHaveLength(1);
  });

  test('is paused again by the first failure before a response was complete, for longer', async () => {
    const model = setUp();
    await untilPaused(model);
    model.say('Hel');
    model.set(unavailable);
    expect(await model.call()).toBe(unavailable);
    expect(await model.call()).toMatchObject({ isSkipped: true, retryAfterMs: 30_000 });
    expect(model.responded).toHaveLength(1);
  });

  test('is reported by each response to a session that was parked, and by no other', async () => {
    const model = setUp();
    await model.call();
    expect(model.responded).toEqual([]);
    await model.call({ wasParked: true });
    await model.call({ wasParked: true });
    expect(model.responded).toHaveLength(2);
  });

  test('is called as soon as another node reports it, and no other model is', async () => {
    const model = setUp();
    await model.call({ wasParked: true });
    const other = { config: { provider: 'openai', model: 'other' } };
    model.set(timeout);
    await model.call();
    await model.call(other);
    model.comeBack(model.responded[0]!);
    model.set('ok');
    expect(await model.call()).toBe('ok');
    expect(await model.call(other)).toMatchObject({ isSkipped: true });
  });
});

test('calls that fail together lengthen the pause only once', async () => {
  const model = setUp();
  model.set(timeout);
  await Promise.all(Array.from({ length: 100 }, () => model.call()));
  expect(await model.call()).toMatchObject({ retryAfterMs: 15_000 });
});

test.each(['model_rejected', 'model_rate_limited', 'model_protocol', 'model_key_rejected'])(
  '%s does not make a model unavailable: it responds',
  async (code) => {
    const model = setUp();
    const failure = new ModelFailure(code, 'No.', { retryable: true });
    model.set(failure);
    for (let n = 0; n < 10; n += 1) expect(await model.call()).toBe(failure);
  },
);

test.each([
  ['organization', { organizationId: 'other' }],
  ['environment', { environment: 'other' }],
  ['model', { config: { provider: 'openai', model: 'other' } }],
  ['base url', { config: { provider: 'openai', model: 'm', baseUrl: 'https://other.example/v1' } }],
  ['key', { config: { provider: 'openai', model: 'm', apiKeySecret: 'OTHER' } }],
])('another %s is not affected', async (_, more) => {
  const model = setUp();
  model.set(timeout);
  await model.call();
  model.set('ok');
  expect(await model.call(more)).toBe('ok');
  expect(await model.call()).toMatchObject({ isSkipped: true });
});
