// Agents of other frameworks as workers, through the client's adapters, on a real service with models over HTTP.
import { fileURLToPath } from 'node:url';
import type { RunOptions } from '@signalbox/client';
import sql from 'sql-template-tag';
import { afterEach, describe, expect, test } from 'vitest';
import { type Running, runProgram } from '../../../../examples/run-program.ts';
import { calls, frameworkWorld, isEnded, isRequested, pay, stopReasonOf, textOf } from '../support/framework-world.ts';
import { frameworks } from '../support/frameworks.ts';
import { raw, refuse, respond, startOpenAiServer } from '../support/openai-server.ts';

const world = frameworkWorld();
const { until, sessionOf, lastPrompt } = world;
const open: typeof world.open = (more, input) => world.open(more, input);

async function upload(filename: string, body: Buffer<ArrayBuffer>): Promise<string> {
  const response = await world.service.fetch(`/api/v1/files?environment=production`, {
    method: 'POST',
    body,
    headers: {
      'content-type': filename.endsWith('.txt') ? 'text/plain' : 'application/octet-stream',
      'x-filename': filename,
    },
  });
  const { file } = (await response.json()) as { file: { fileId: string } };
  return file.fileId;
}

let processes: Running[] = [];
afterEach(() => {
  for (const { process } of processes) process.kill('SIGKILL');
  processes = [];
});

describe.each(frameworks)('$name', (framework) => {
  const run = (options: Partial<RunOptions> = {}) =>
    world.start({ onTurn: framework.onTurn(world.server.url), ...options });

  function startProcess(env: Record<string, string> = {}): Running {
    const running = runProgram(fileURLToPath(new URL('../support/framework-program.ts', import.meta.url)), [], {
      SIGNALBOX_URL: world.service.url,
      SIGNALBOX_API_KEY: world.service.adminKey,
      MODEL_URL: world.server.url,
      QUEUE: world.queue,
      FRAMEWORK: framework.name,
      ...env,
    });
    processes.push(running);
    return running;
  }

  /** What PostgreSQL's clock does within 30 s of a process that was killed. */
  async function expireLeases(): Promise<void> {
    await world.service.db.execute(sql`update nodes set lease_expires_at = now() - interval '1 minute' where node_id in
      (select node_id from sessions where queue = ${world.queue})`);
  }

  test('text is streamed as it arrives, and its usage is on the session', async () => {
    world.server.next(respond({ text: ['Hel', 'lo ', '👋'], usage: { prompt: 12, completion: 5, cached: 4 } }));
    run();
    const session = await open();
    const chunks = await until(session, isEnded);
    expect(textOf(chunks)).toBe('Hello 👋');
    expect(stopReasonOf(chunks)).toBe('endTurn');
    expect(await sessionOf(session)).toMatchObject({
      usage: { inputTokens: 12, outputTokens: 5, cachedTokens: 4, steps: 1 },
    });
    expect(lastPrompt()).toEqual(['system: Be brief.', 'user: Pay 17']);
  });

  test('images and PDFs reach the model as they are, text as text, and other files by their names', async () => {
    world.server.next(respond({ text: 'I see.' }));
    run();
    const png = Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
      'base64',
    );
    const pdf = Buffer.from('%PDF-1.4\n%%EOF\n');
    const [image, document, text, unknown, deleted] = await Promise.all([
      upload('dot.png', png),
      upload('bill.pdf', pdf),
      upload('notes.txt', Buffer.from('Order 17 ☂')),
      upload('raw.bin', Buffer.from([0, 1, 2, 3])),
      upload('gone.png', png),
    ]);
    const parts = [image, document, text, unknown, deleted].map((fileId) => ({ type: 'file' as const, fileId }));
    const session = await open({}, [{ type: 'text', text: 'Look:' }, ...parts]);
    await until(session, isEnded);
    const [, { content }] = world.server.requests[0]!.body.messages as unknown as [unknown, { content: object[] }];
    const sent = JSON.stringify(content);
    expect(content).toHaveLength(6);
    expect(sent).toContain(`data:image/png;base64,${png.toString('base64')}`);
    expect(sent).toContain(pdf.toString('base64'));
    expect(sent).toContain('Order 17 ☂');
    expect(sent).toContain('[file raw.bin: application/octet-stream, 4 bytes]');

    // What has been deleted is said to be.
    world.server.next(respond({ text: 'Gone.' }));
    await world.service.fetch(`/api/v1/files/${deleted}`, { method: 'DELETE' });
    await world.service.client.sessions.sendMessage(session.sessionId, { content: 'And now?' });
    await until(session, (chunk) => isEnded(chunk) && chunk.turn === 2);
    expect(JSON.stringify(world.server.requests[1]!.body.messages)).toContain(
      'gone.png: image/png, 70 bytes] This file was deleted.',
    );
  });

  test('a long text before a call is all in the response that made the call', async () => {
    const text = Array.from({ length: 2_000 }, (_, index) => `word ${index} `);
    world.server.next(
      respond({ text, toolCalls: [{ name: 'pay', arguments: { order: '1' } }] }),
      respond({ text: 'Paid.' }),
    );
    run({ tools: { pay: () => 'paid' } });
    const session = await open({ tools: [pay()] });
    await until(session, isEnded);
    const { data } = await world.service.client.sessions.messages(session.sessionId);
    expect(data.map(({ content }) => content[0])).toMatchObject([
      { text: 'Pay 17' },
      { text: text.join('') },
      { output: 'paid' },
      { text: 'Paid.' },
    ]);
  });

  test('the next turn sees the previous one', async () => {
    world.server.next(calls('17'), respond({ text: 'Paid.' }), respond({ text: 'You asked me to pay.' }));
    run({ tools: { pay: () => ({ receipt: 1 }) } });
    const session = await open({ tools: [pay()] });
    await until(session, isEnded);
    await world.service.client.sessions.sendMessage(session.sessionId, { content: 'What did I ask?' });
    await until(session, (chunk) => isEnded(chunk) && chunk.turn === 2);
    expect(lastPrompt()).toEqual([
      'system: Be brief.',
      'user: Pay 17',
      'assistant: One moment.  pay{"order":"17"}',
      'tool: {"receipt":1}',
      'assistant: Paid.',
      'user: What did I ask?',
    ]);
  });

  test('parallel calls are one step: one runs while the other waits for its approval', async () => {
    const paid: string[] = [];
    world.server.next(calls('17', '18'), respond({ text: 'Done.', usage: { prompt: 20, completion: 2 } }));
    run({
      tools: {
        pay: ({ order }) => {
          paid.push(order);
          return `paid ${order}`;
        },
      },
    });
    const approval = { when: { properties: { order: { const: '18' } } } };
    const session = await open({ tools: [pay({ approval })] });
    const waiting = await until(session, isRequested);
    const { operationId } = waiting.find(isRequested)!;
    await until(session, (chunk) => chunk.type === 'tool.result');
    expect(paid).toEqual(['17']);
    expect(world.server.requests).toHaveLength(1);
    // The usage of a model call is there before its calls end.
    expect(await sessionOf(session)).toMatchObject({ usage: { inputTokens: 10, outputTokens: 5, steps: 1 } });

    await world.service.client.approvals.approve(operationId, { input: { order: '18b' } });
    const chunks = await until(session, isEnded);
    expect(paid).toEqual(['17', '18b']);
    expect(textOf(chunks)).toBe('One moment. Done.');
    expect(lastPrompt().slice(2)).toEqual([
      'assistant: One moment.  pay{"order":"17"} pay{"order":"18"}',
      'tool: paid 17',
      'tool: The approver changed the input of this call to {"order":"18b"}. Its result: paid 18b',
    ]);
    expect(await sessionOf(session)).toMatchObject({ usage: { inputTokens: 30, steps: 2, toolCalls: 2 } });
  });

  test('a denied call did not run, and the model gets the reason', async () => {
    let paid = 0;
    world.server.next(calls('17'), respond({ text: 'I was not allowed to.' }));
    run({ tools: { pay: () => ++paid } });
    const session = await open({ tools: [pay({ approval: 'always' })] });
    const { operationId } = (await until(session, isRequested)).find(isRequested)!;
    await world.service.client.approvals.deny(operationId, { reason: 'Too expensive' });
    expect(stopReasonOf(await until(session, isEnded))).toBe('endTurn');
    expect(paid).toBe(0);
    expect(lastPrompt().at(-1)).toMatch(/^tool: Error: .*Too expensive/);
  });

  test('a call that fails, and one whose input is wrong, are errors for the model', async () => {
    world.server.next(
      respond({ toolCalls: [{ name: 'pay', arguments: { order: '1' } }] }),
      respond({ toolCalls: [{ name: 'pay', arguments: { sum: 1 } }] }),
      respond({ text: 'It did not work.' }),
    );
    run({
      tools: {
        pay: () => {
          throw new Error('The card was refused');
        },
      },
    });
    const session = await open({ tools: [pay()] });
    const chunks = await until(session, isEnded);
    expect(textOf(chunks)).toBe('It did not work.');
    expect(lastPrompt()).toContain('tool: Error: The card was refused');
    expect(lastPrompt().at(-1)).toMatch(/^tool: .*(schema|required)/);
  });

  test('a cancelled turn asks no model again', async () => {
    world.server.next(calls('17'));
    const worker = run({ tools: { pay: () => 'paid' } });
    const session = await open({ tools: [pay({ approval: 'always' })] });
    await until(session, isRequested);
    await world.service.client.sessions.cancel(session.sessionId);
    await until(session, (chunk) => chunk.type === 'session.status' && chunk.status === 'cancelled');
    await worker.stop();
    expect(world.server.requests).toHaveLength(1);
    expect(worker.errors).toEqual([]);
  });

  test('an interrupted turn ends the request to its model', async () => {
    world.server.next(respond({ text: 'One', end: 'hang' }));
    const { errors } = run();
    const session = await open();
    await until(session, (chunk) => chunk.type === 'message.chunk');
    await world.service.client.sessions.interrupt(session.sessionId);
    expect(await world.server.requests[0]!.closed).toBe(false);
    expect(stopReasonOf(await until(session, isEnded))).toBe('interrupted');
    expect(errors).toEqual([]);
  });

  test('after a kill between two steps another process continues, and the call is not made again', async () => {
    world.server.next(calls('17'), raw([], { hang: true }), respond({ text: 'Paid once.' }));
    const first = startProcess();
    const session = await open({ tools: [pay({ effectful: true, approval: 'never' })] });
    await expect.poll(() => world.server.requests.length).toBe(2);
    first.process.kill('SIGKILL');
    await first.ended;
    await expireLeases();
    const second = startProcess();
    expect(textOf(await until(session, isEnded))).toBe('One moment. Paid once.');
    expect(`${first.printed}${second.printed}`).toBe('effect\n');
    expect(lastPrompt().slice(2)).toEqual(['assistant: One moment.  pay{"order":"17"}', 'tool: paid']);
  });

  test('after a kill within an effectful call its result says that the outcome is unknown', async () => {
    world.server.next(calls('17'), respond({ text: 'I do not know whether it was paid.' }));
    const first = startProcess({ HANG: '1' });
    const session = await open({ tools: [pay({ effectful: true, approval: 'never' })] });
    await first.until('effect');
    first.process.kill('SIGKILL');
    await first.ended;
    await expireLeases();
    const second = startProcess();
    await until(session, isEnded);
    expect(`${first.printed}${second.printed}`).toBe('effect\n');
    expect(lastPrompt().at(-1)).toMatch(/^tool: Error: .*may or may not/);
  });

  test.each([
    [400, 'model_rejected'],
    [401, 'model_key_rejected'],
    [503, 'model_unavailable'],
  ])(
    'a provider that responds with %i ends the turn as %s, with nothing that the provider said',
    async (status, code) => {
      const body = { error: { message: 'You said: Pay 17', type: 'x', code: 'y' } };
      world.server.next(...Array.from({ length: 3 }, () => refuse(status, { body })));
      const { errors } = run();
      const session = await open();
      expect(stopReasonOf(await until(session, isEnded))).toBe('error');
      const { error } = await sessionOf(session);
      expect(error).toEqual({ code, message: `The model's provider responded with HTTP ${status}` });
      // The program itself gets everything.
      expect((errors[0] as Error).cause).toBeInstanceOf(Error);
    },
  );

  test('a provider that is not there ends the turn as model_unavailable', async () => {
    const gone = await startOpenAiServer();
    await gone.close();
    world.start({ onTurn: framework.onTurn(gone.url) });
    const session = await open();
    await until(session, isEnded);
    expect((await sessionOf(session)).error?.code).toBe('model_unavailable');
  });

  test.each(['cut', 'reset'] as const)(
    'a response whose stream is %s fails the turn, and its text is void',
    async (end) => {
      world.server.next(...Array.from({ length: 3 }, () => respond({ text: 'Half a ', end })));
      run();
      const session = await open();
      const chunks = await until(session, isEnded);
      const { error } = await sessionOf(session);
      expect({ stopReason: stopReasonOf(chunks), code: error?.code, message: error?.message }).toEqual({
        stopReason: 'error',
        code: 'model_unavailable',
        message: expect.any(String),
      });
      expect(chunks.map(({ type }) => type)).toContain('message.reset');
    },
  );

  test.each([
    [{ end: 'cut' }, 'error'],
    [{ finishReason: 'length' }, 'maxOutputTokens'],
    [{ finishReason: 'content_filter' }, 'refusal'],
  ] as const)('none of the calls of a response with %o is made', async (how, stopReason) => {
    const paid: unknown[] = [];
    const toolCalls = ['{"order":"1"}', '{"order":"17'].map((text) => ({ name: 'pay', arguments: text }));
    world.server.next(respond({ text: 'One moment. ', toolCalls, ...how }), respond({ text: 'Paid.' }));
    run({ tools: { pay: (input) => paid.push(input) } });
    const chunks = await until(await open({ tools: [pay()] }), isEnded);
    expect(paid).toEqual([]);
    expect(stopReasonOf(chunks)).toBe(stopReason);
    expect(world.server.requests).toHaveLength(1);
  });

  test('a response that arrives all at once is read before its calls are made', async () => {
    const event = (id: string, choice: object) =>
      `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', created: 1, model: 'any', choices: [{ index: 0, finish_reason: null, ...choice }] })}\n\n`;
    const call = { index: 0, type: 'function', function: { name: 'pay', arguments: '{"order":"1"}' } };
    const words = Array.from({ length: 3_000 }, (_, index) => `word ${index} `);
    const events = (reason: string) => [
      event(reason, { delta: { role: 'assistant', content: '' } }),
      ...words.map((content) => event(reason, { delta: { content } })),
      event(reason, { delta: { tool_calls: [{ ...call, id: reason }] } }),
      event(reason, { delta: {}, finish_reason: reason }),
      'data: [DONE]\n\n',
    ];
    const paid: unknown[] = [];
    run({ tools: { pay: (input) => paid.push(input) } });
    world.server.next(raw([events('tool_calls').join('')]), raw([events('length').join('')]));
    const session = await open({ tools: [pay()] });
    expect(stopReasonOf(await until(session, isEnded))).toBe('maxOutputTokens');
    expect(paid).toHaveLength(1);
    const { data } = await world.service.client.sessions.messages(session.sessionId);
    expect(data.map(({ content }) => content[0])).toMatchObject([
      {},
      { text: words.join('') },
      {},
      { text: words.join('') },
    ]);
  });

  test('a response that its token limit has cut ends the turn as maxOutputTokens', async () => {
    world.server.next(respond({ text: 'One, two', finishReason: 'length' }));
    run();
    expect(stopReasonOf(await until(await open(), isEnded))).toBe('maxOutputTokens');
  });

  test('the model gets the output schema, and the error if its response does not match', async () => {
    world.server.next(respond({ text: 'Seventeen.' }), respond({ text: '{"order":17}' }));
    run();
    const outputSchema = { type: 'object', properties: { order: { type: 'integer' } }, required: ['order'] };
    const chunks = await until(await open({ outputSchema }), isEnded);
    expect(chunks.find(isEnded)).toMatchObject({ stopReason: 'endTurn', output: { order: 17 } });
    expect(lastPrompt()[0]).toContain(JSON.stringify(outputSchema));
    expect(lastPrompt()).toHaveLength(4);
  });

  test('maxStepsPerTurn ends the turn', async () => {
    world.server.next(calls('1'), calls('2'), calls('3'));
    run({ tools: { pay: () => 'paid' } });
    const chunks = await until(await open({ tools: [pay()], limits: { maxStepsPerTurn: 2 } }), isEnded);
    expect(stopReasonOf(chunks)).toBe('maxSteps');
    expect(world.server.requests).toHaveLength(2);
  });

  test('a tool of the framework becomes a client tool: it is approved, checks its input and runs', async () => {
    const added: unknown[] = [];
    const own = await framework.ownTool((a, b) => {
      added.push([a, b]);
      return a + b;
    });
    expect(own.definitions).toEqual([
      expect.objectContaining({ type: 'client', name: 'add', approval: 'always', effectful: true }),
    ]);
    await expect(own.misspelt()).rejects.toThrow('There is no tool "ad"');
    world.server.next(
      respond({ toolCalls: [{ name: 'add', arguments: { a: 1, b: 2 } }] }),
      respond({ text: 'Three.' }),
    );
    run({ tools: own.functions });
    const session = await open({ tools: own.definitions });
    const { operationId } = (await until(session, isRequested)).find(isRequested)!;
    await world.service.client.approvals.approve(operationId);
    expect(textOf(await until(session, isEnded))).toBe('Three.');
    expect(added).toEqual([[1, 2]]);
    expect(lastPrompt().at(-1)).toBe('tool: 3');
  });
});
