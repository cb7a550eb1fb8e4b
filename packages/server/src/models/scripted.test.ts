import type { MessagePart, ScriptStep } from '@signalbox/contract';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { type ModelCall, type ModelEvent, ModelFailure } from './model/model.ts';
import { createScriptedModel } from './scripted.ts';

const ask = createScriptedModel(createManualClock());
const never = new AbortController().signal;

const user = (text: string) => ({ role: 'user' as const, content: [{ type: 'text' as const, text }] });
const result = (part: object) => ({
  role: 'tool' as const,
  content: [{ type: 'tool_result', toolCallId: 'call_1', ...part } as MessagePart],
});

function callOf(script: ScriptStep[] | undefined, more: Partial<ModelCall> = {}): ModelCall {
  return {
    organizationId: '',
    sessionId: '',
    environment: 'production',
    config: { provider: 'scripted', model: 'any', settings: script ? { script } : {} },
    instructions: '',
    tools: [],
    limits: { maxOutputTokens: null },
    outputSchema: null,
    transcript: [user('Hello there')],
    callsBefore: 0,
    ...more,
  };
}

async function responseTo(call: ModelCall) {
  const events: ModelEvent[] = [];
  let failure: unknown;
  try {
    for await (const event of ask(call, never)) events.push(event);
  } catch (error) {
    failure = error;
  }
  const deltas = events.flatMap((event) => (event.type === 'text' ? [event.delta] : []));
  return {
    deltas,
    text: deltas.join(''),
    calls: events.flatMap((event) => (event.type === 'toolCall' ? [[event.name, event.input]] : [])),
    finish: events.find((event) => event.type === 'finish'),
    failure: failure as ModelFailure | undefined,
  };
}

test('the n-th call uses the n-th step, and the last step repeats', async () => {
  const script = [{ text: 'one' }, { text: 'two' }];
  const texts = [0, 1, 2, 50].map(async (callsBefore) => (await responseTo(callOf(script, { callsBefore }))).text);
  expect(await Promise.all(texts)).toEqual(['one', 'two', 'two', 'two']);
});

test('without a script it echoes the input', async () => {
  expect(await responseTo(callOf(undefined))).toMatchObject({ text: 'Hello there', finish: { reason: 'endTurn' } });
});

test('text is streamed word by word and is exactly the text of the script', async () => {
  expect((await responseTo(callOf([{ text: ' a  b\nc ' }]))).deltas).toEqual([' a', '  b', '\nc', ' ']);
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: fc.constantFrom('a', ' ', '\n', '😀', '$', '{') }), async (text) => {
      expect((await responseTo(callOf([{ text }]))).text).toBe(text);
    }),
  );
});

describe('placeholders', () => {
  test('are replaced by the last user message and the last tool result', async () => {
    const transcript = [user('first'), result({ output: 'old' }), user('$& second'), result({ output: { n: [1] } })];
    const call = callOf([{ text: '{{input}} | {{lastToolResult}}' }], { transcript });
    expect((await responseTo(call)).text).toBe('$& second | {"n":[1]}');
  });

  test.each([
    ['a string as it is', { output: 'plain' }, 'plain'],
    ['an error’s text', { error: 'denied' }, 'denied'],
    ['null', { output: null }, 'null'],
  ])('give %s', async (_title, part, expected) => {
    const transcript = [user('x'), result(part)];
    expect((await responseTo(callOf([{ text: '{{lastToolResult}}' }], { transcript }))).text).toBe(expected);
  });

  test('are not replaced in inserted text', async () => {
    const transcript = [user('{{lastToolResult}}'), result({ output: '{{input}}' })];
    const call = callOf([{ text: '{{input}}{{lastToolResult}}' }], { transcript });
    expect((await responseTo(call)).text).toBe('{{lastToolResult}}{{input}}');
  });

  test('cannot multiply a long message beyond the maximum length of a response', async () => {
    const transcript = [user('😀'.repeat(200_000))];
    const long = '{{input}}'.repeat(2000);
    const { text, calls, failure } = await responseTo(
      callOf([{ text: `x${long}`, toolCalls: [{ name: 'a', input: [long, long] }] }], { transcript }),
    );
    expect(failure).toBeUndefined();
    expect(text.length).toBeGreaterThan(999_990);
    expect(text.length + JSON.stringify(calls).length).toBeLessThan(1_000_100);
    expect(text.isWellFormed()).toBe(true);
  });
});

test('tool calls follow the text, and placeholders in strings of their input are filled in', async () => {
  const toolCalls = [
    { name: 'look', input: { q: 'find {{input}}', n: 1, deep: [{ a: '{{input}}' }] } },
    { name: 'now' },
  ];
  const response = await responseTo(callOf([{ text: 'Wait', toolCalls }]));
  expect(response).toMatchObject({ text: 'Wait', finish: { reason: 'toolCalls' } });
  expect(response.calls).toEqual([
    ['look', { q: 'find Hello there', n: 1, deep: [{ a: 'Hello there' }] }],
    ['now', {}],
  ]);
});

describe('failWith', () => {
  test.each([
    ['timeout', 'model_timeout', ''],
    ['rate_limited', 'model_rate_limited', ''],
    ['broken_stream', 'model_unavailable', 'one two'],
  ] as const)('%s fails with %s, and can be retried', async (failWith, code, text) => {
    const response = await responseTo(callOf([{ text: 'one two three four', failWith }]));
    expect(response.failure).toBeInstanceOf(ModelFailure);
    expect(response).toMatchObject({ text, failure: { code, retryable: true }, finish: undefined });
  });

  test('rejected fails with model_rejected, which a retry can’t change', async () => {
    const { failure } = await responseTo(callOf([{ text: 'No', failWith: 'rejected' }]));
    expect(failure).toMatchObject({ code: 'model_rejected', retryable: false });
  });

  test('refusal responds with its text and requests no tool calls', async () => {
    const response = await responseTo(callOf([{ text: 'No', failWith: 'refusal', toolCalls: [{ name: 'a' }] }]));
    expect(response).toMatchObject({ text: 'No', calls: [], finish: { reason: 'refusal' } });
  });

  test('max_output_tokens reports that the response was cut off', async () => {
    const script = [{ text: 'Once upon', failWith: 'max_output_tokens' as const, toolCalls: [{ name: 'a' }] }];
    expect(await responseTo(callOf(script))).toMatchObject({
      text: 'Once upon',
      calls: [['a', {}]],
      finish: { reason: 'maxOutputTokens' },
    });
  });
});

test('the same call uses the same number of tokens, one for each word', async () => {
  const call = callOf([{ text: 'I see {{input}}' }], { instructions: 'Be kind' });
  const { finish } = await responseTo(call);
  expect(finish).toMatchObject({ usage: { inputTokens: 4, outputTokens: 4, cachedTokens: 0 } });
  expect((await responseTo(call)).finish).toEqual(finish);
});

describe('tokenDelayMs', () => {
  test('is the delay before each word', async () => {
    const clock = createManualClock();
    const events = createScriptedModel(clock)(callOf([{ text: 'a b', tokenDelayMs: 50 }]), never);
    for (const delta of ['a', ' b']) {
      const next = events.next();
      await clock.advance(50);
      expect((await next).value).toEqual({ type: 'text', delta });
    }
    expect((await events.next()).value).toMatchObject({ type: 'finish' });
  });

  test('ends at once with the reason when the call is aborted', async () => {
    const clock = createManualClock();
    const abort = new AbortController();
    const reason = new Error('stopped');
    const next = createScriptedModel(clock)(callOf([{ text: 'a', tokenDelayMs: 50 }]), abort.signal).next();
    abort.abort(reason);
    await expect(next).rejects.toBe(reason);
  });
});
