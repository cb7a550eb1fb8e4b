import type { ServerResponse } from 'node:http';
import { describe, expect, test, vi } from 'vitest';
import { type Answer, clientOf, problem, timeoutMs } from '../test/fake-service.ts';
import { type Chunk, type Envelope, NotFoundError, type SessionStream, type Sleep } from './index.ts';

const delta = (seq: number): Chunk => ({ type: 'message.chunk', delta: `d${seq}`, turn: 1, seq });
const completed = (seq: number): Chunk => ({
  type: 'session.status',
  status: 'completed',
  waitingFor: null,
  turn: 1,
  seq,
});

function envelope(...chunks: Chunk[]): Envelope {
  const { turn, seq } = chunks.at(-1)!;
  return {
    event: 'session.chunks',
    environment: 'production',
    sessionId: 'ses_1',
    agentId: 'agt_1',
    cursor: `turn_${turn}:seq_${seq}`,
    timestamp: '2026-01-01T00:00:00.000Z',
    chunks,
  };
}

const text = (one: Envelope) => `id: ${one.cursor}\nevent: session.chunks\ndata: ${JSON.stringify(one)}\n\n`;

function begin(response: ServerResponse, ...envelopes: Envelope[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  response.write(`: open\n\n${envelopes.map(text).join('')}`);
}

/** Cuts the connection as a crash does, but only after everything written was sent. */
function breakOff(response: ServerResponse): void {
  response.write('', () => setImmediate(() => response.socket?.destroy()));
}

async function all(stream: SessionStream): Promise<string[]> {
  const seen: string[] = [];
  for await (const { chunks } of stream) seen.push(...chunks.map(({ turn, seq }) => `${turn}:${seq}`));
  return seen;
}

const cursors = (seen: { url: string }[]) => seen.map(({ url }) => new URL(url, 'http://x').searchParams.get('cursor'));

describe('a stream', () => {
  test('returns the envelopes in order, has the cursor of the last one, and ends with the session', async () => {
    const { client, seen } = await clientOf((response) => {
      begin(response, envelope(delta(1), delta(2)), envelope(delta(3)), envelope(completed(4)));
    });
    const stream = client.sessions.stream('ses_1', { types: ['message.chunk', 'session.status'] });
    expect(stream.cursor).toBeNull();
    const passed: (string | null)[] = [];
    for await (const { cursor } of stream) passed.push(cursor, stream.cursor);
    expect(passed).toEqual([
      'turn_1:seq_2',
      'turn_1:seq_2',
      'turn_1:seq_3',
      'turn_1:seq_3',
      'turn_1:seq_4',
      'turn_1:seq_4',
    ]);
    expect(seen).toHaveLength(1);
    expect(seen[0]).toMatchObject({
      url: '/api/v1/sessions/ses_1/stream?types=message.chunk%2Csession.status',
      headers: { accept: 'text/event-stream' },
    });
  });

  test('of an ended session ends immediately (204)', async () => {
    const { client, seen } = await clientOf((response) => void response.writeHead(204).end());
    expect(await all(client.sessions.stream('ses_1', { cursor: 'turn_1:seq_9' }))).toEqual([]);
    expect(cursors(seen)).toEqual(['turn_1:seq_9']);
  });

  test('ends with 204 if its filter excludes the terminal status', async () => {
    const { client, seen } = await clientOf((response, _, number) => {
      if (number === 1) response.writeHead(204).end();
      else {
        begin(response, envelope(delta(1)));
        response.end();
      }
    });
    expect(await all(client.sessions.stream('ses_1', { types: ['message.chunk'] }))).toEqual(['1:1']);
    expect(seen).toHaveLength(2);
  });

  test('connects again at once, without a loss, after the position of a terminal status that is not of its types', async () => {
    const { client, seen } = await clientOf((response, _, number) => {
      if (number === 1) return void response.writeHead(204).end();
      begin(response, envelope(delta(1)));
      response.end('id: turn_1:seq_2\n\n');
    });
    const states: string[] = [];
    const onConnection = (state: string) => void states.push(state);
    const stream = client.sessions.stream('ses_1', { types: ['message.chunk'], onConnection });
    expect(await all(stream)).toEqual(['1:1']);
    expect(cursors(seen)).toEqual([null, 'turn_1:seq_2']);
    expect(states).toEqual(['open']);
  });

  test('ends the request at a break, and continues from there if iterated over again', async () => {
    const closed = Promise.withResolvers<void>();
    const { client, seen } = await clientOf((response, _, number) => {
      if (number === 0) {
        response.on('close', closed.resolve);
        begin(response, envelope(delta(1)), envelope(delta(2)));
      } else begin(response, envelope(delta(2)), envelope(completed(3)));
    });
    const stream = client.sessions.stream('ses_1');
    for await (const _ of stream) break;
    await closed.promise;
    expect(await all(stream)).toEqual(['1:2', '1:3']);
    expect(cursors(seen)).toEqual([null, 'turn_1:seq_1']);
  });
});

describe('a lost connection', () => {
  test('is resumed after the last cursor, whether cut between events, within one, within a character, or ended', async () => {
    const chunk = (seq: number): Chunk => ({ ...delta(seq), delta: 'é€😀' }) as Chunk;
    const half = (one: Envelope, lost: number) => Buffer.from(text(one)).subarray(0, -lost);
    const insideCharacter = Buffer.from(text(envelope(chunk(3)))).indexOf('😀') + 2;
    const { client, seen, pauses } = await clientOf((response, _, number) => {
      if (number === 0) {
        begin(response, envelope(chunk(1)));
        breakOff(response);
      } else if (number === 1) {
        begin(response, envelope(chunk(2)));
        response.write(half(envelope(chunk(3)), 1));
        breakOff(response);
      } else if (number === 2) {
        begin(response);
        response.write(Buffer.from(text(envelope(chunk(3)))).subarray(0, insideCharacter));
        response.end();
      } else begin(response, envelope(chunk(3)), envelope(completed(4)));
    });
    expect(await all(client.sessions.stream('ses_1'))).toEqual(['1:1', '1:2', '1:3', '1:4']);
    expect(cursors(seen)).toEqual([null, 'turn_1:seq_1', 'turn_1:seq_2', 'turn_1:seq_2']);
    expect(pauses).toHaveLength(3);
  });

  test('is reported to onConnection, and so is the next one; an abort is not', async () => {
    const { client } = await clientOf((response, _, number) => {
      if (number === 1) return void response.writeHead(503).end();
      begin(response, envelope(delta(number + 1)));
      if (number === 0) breakOff(response);
    });
    const states: string[] = [];
    const over = new AbortController();
    const stream = client.sessions.stream(
      'ses_1',
      { onConnection: (state) => void states.push(state) },
      { signal: over.signal },
    );
    const reading = (async () => {
      for await (const { cursor } of stream) if (cursor === 'turn_1:seq_3') over.abort(new Error('enough'));
    })();
    await expect(reading).rejects.toThrow('enough');
    expect(states).toEqual(['open', 'lost', 'lost', 'open']);
  });

  test('returns nothing twice, even if the service repeats or regroups chunks', async () => {
    const { client } = await clientOf((response, _, number) => {
      if (number === 0) {
        begin(response, envelope(delta(1)), envelope(delta(2)));
        breakOff(response);
      } else {
        begin(
          response,
          envelope(delta(1), delta(2)),
          envelope(delta(2), delta(3)),
          envelope({ ...completed(1), turn: 2 }),
        );
      }
    });
    expect(await all(client.sessions.stream('ses_1'))).toEqual(['1:1', '1:2', '1:3', '2:1']);
  });

  test('is retried while the service restarts: refused, 503 with Retry-After, 502 from a proxy', async () => {
    const { client, pauses } = await clientOf((response, _, number) => {
      if (number === 0) {
        begin(response, envelope(delta(1)));
        breakOff(response);
      } else if (number === 1) response.socket?.destroy();
      else if (number === 2) problem(response, 503, 'unavailable', { 'retry-after': '5' });
      else if (number === 3) response.writeHead(502).end('bad gateway');
      else begin(response, envelope(completed(2)));
    });
    expect(await all(client.sessions.stream('ses_1'))).toEqual(['1:1', '1:2']);
    expect(pauses).toHaveLength(4);
    expect(pauses[2]).toBe(5000);
    for (const pause of pauses) expect(pause).toBeGreaterThanOrEqual(250);
  });

  test('is retried with growing pauses if the service sends only comments, until the limit', async () => {
    const { client, seen, pauses } = await clientOf((response) => {
      begin(response);
      breakOff(response);
    });
    await expect(all(client.sessions.stream('ses_1'))).rejects.toThrow();
    expect(seen).toHaveLength(33);
    expect(Math.min(...pauses.slice(10))).toBeGreaterThanOrEqual(5000);
  });

  test('does not count if it lasted, even without data', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const { client, seen } = await clientOf((response, _, number) => {
      if (number === 40) return begin(response, envelope(completed(1)));
      begin(response);
      breakOff(response);
    });
    const onConnection = (state: string) => void (state === 'open' && vi.setSystemTime(Date.now() + 60_000));
    expect(await all(client.sessions.stream('ses_1', { onConnection }))).toEqual(['1:1']);
    expect(seen).toHaveLength(41);
    vi.useRealTimers();
  });

  test('is detected by silence alone: three ticks without a byte, not two', async () => {
    const ticks: (() => void)[] = [];
    let nextTick = Promise.withResolvers<void>();
    const sleep: Sleep = (ms, signal) => {
      if (ms !== timeoutMs && ms !== 10_000) return Promise.resolve();
      return new Promise((resolve, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason));
        if (ms !== 10_000) return;
        ticks.push(resolve);
        nextTick.resolve();
      });
    };
    const tick = async () => {
      await nextTick.promise;
      nextTick = Promise.withResolvers();
      ticks.pop()!();
    };
    const first = Promise.withResolvers<ServerResponse>();
    const closed = Promise.withResolvers<void>();
    const { client, seen } = await clientOf(
      (response, _, number) => {
        if (number === 0) {
          response.on('close', closed.resolve);
          begin(response, envelope(delta(1)));
          first.resolve(response);
        } else begin(response, envelope(completed(3)));
      },
      { sleep },
    );
    const iterator = client.sessions.stream('ses_1')[Symbol.asyncIterator]();
    expect((await iterator.next()).value?.cursor).toBe('turn_1:seq_1');
    // Data since it started, then two silent ticks, then another envelope: still the first connection.
    await tick();
    await tick();
    await tick();
    (await first.promise).write(text(envelope(delta(2))));
    expect((await iterator.next()).value?.cursor).toBe('turn_1:seq_2');
    expect(seen).toHaveLength(1);
    const next = iterator.next();
    for (let count = 0; count < 4; count++) await tick();
    await closed.promise;
    expect((await next).value?.cursor).toBe('turn_1:seq_3');
    expect(cursors(seen)).toEqual([null, 'turn_1:seq_2']);
  });

  test('is abandoned after 32 consecutive attempts without data, not after 100 with data', async () => {
    const away = await clientOf((response, _, number) => {
      if (number === 0) {
        begin(response, envelope(delta(1)));
        breakOff(response);
      } else problem(response, 503, 'unavailable');
    });
    await expect(all(away.client.sessions.stream('ses_1'))).rejects.toMatchObject({ status: 503 });
    expect(away.seen).toHaveLength(33);

    const empty = await clientOf((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end();
    });
    await expect(all(empty.client.sessions.stream('ses_1'))).rejects.toThrow('ended before the session did');
    expect(empty.seen).toHaveLength(33);

    const flapping = await clientOf((response, _, number) => {
      begin(response, envelope(number === 100 ? completed(2) : delta(1)));
      response.end();
    });
    expect(await all(flapping.client.sessions.stream('ses_1'))).toEqual(['1:1', '1:2']);
  });
});

describe('a stream fails', () => {
  const refuse: Answer = (response) => problem(response, 404, 'not_found');

  test('immediately with a 4xx, and before it starts with the errors of any call', async () => {
    const missing = await clientOf(refuse);
    await expect(all(missing.client.sessions.stream('ses_1'))).rejects.toThrow(NotFoundError);
    expect(missing.seen).toHaveLength(1);
    const away = await clientOf((response) => problem(response, 503, 'unavailable'));
    await expect(all(away.client.sessions.stream('ses_1'))).rejects.toMatchObject({ status: 503 });
    expect(away.seen).toHaveLength(3);
  });

  test('with a 4xx also when it resumes', async () => {
    const { client, seen } = await clientOf((response, _, number) => {
      if (number > 0) return problem(response, 401, 'token_rotated');
      begin(response, envelope(delta(1)));
      breakOff(response);
    });
    await expect(all(client.sessions.stream('ses_1'))).rejects.toMatchObject({ code: 'token_rotated' });
    expect(seen).toHaveLength(2);
  });

  test('if the response is not an event stream, or an event is not JSON', async () => {
    const page = await clientOf((response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>'));
    await expect(all(page.client.sessions.stream('ses_1'))).rejects.toMatchObject({ code: 'unexpected_response' });
    const bad = await clientOf((response) => {
      begin(response);
      response.write('event: session.chunks\ndata: {"a\n\n');
    });
    await expect(all(bad.client.sessions.stream('ses_1'))).rejects.toMatchObject({ code: 'unexpected_response' });
  });

  test('with the signal’s reason, waiting for a chunk or between connections', async () => {
    const reason = new Error('enough');
    const closed = Promise.withResolvers<void>();
    const waiting = new AbortController();
    const { client } = await clientOf((response) => {
      response.on('close', closed.resolve);
      begin(response, envelope(delta(1)));
    });
    const iterator = client.sessions.stream('ses_1', {}, { signal: waiting.signal })[Symbol.asyncIterator]();
    await iterator.next();
    const next = iterator.next();
    waiting.abort(reason);
    await expect(next).rejects.toBe(reason);
    await closed.promise;

    const between = new AbortController();
    const lost = await clientOf((response, _, number) => {
      if (number === 1) between.abort(reason);
      begin(response, envelope(delta(1)));
      response.end();
    });
    await expect(all(lost.client.sessions.stream('ses_1', {}, { signal: between.signal }))).rejects.toBe(reason);
  });
});

describe('a change that streams', () => {
  const session = (status: string, cursor: string | null = 'turn_1:seq_1') => ({ sessionId: 'ses_1', status, cursor });
  const idle = (seq: number): Chunk => ({ ...completed(seq), status: 'idle' }) as Chunk;
  const first = (value: object) => `event: session\ndata: ${JSON.stringify(value)}\n\n`;

  function respond(response: ServerResponse, value: object, ...envelopes: Envelope[]): void {
    response.writeHead(201, { 'content-type': 'text/event-stream; charset=utf-8' });
    response.write(first(value) + envelopes.map(text).join(''));
  }

  const open = (client: Awaited<ReturnType<typeof clientOf>>['client'], options = {}) =>
    client.sessions.openAndStream({ agentId: 'agt_1', environment: 'production', input: 'Hello' }, options);

  test('returns the session, and streams until it is idle, with one request whose connection can be used again', async () => {
    const { client, seen } = await clientOf((response) => {
      respond(response, { session: session('running') }, envelope(delta(2)), envelope(idle(3)));
      response.end();
    });
    const { session: opened, stream } = await open(client);
    expect(opened).toMatchObject({ sessionId: 'ses_1', status: 'running' });
    expect(await all(stream)).toEqual(['1:2', '1:3']);
    expect(seen).toMatchObject([{ method: 'POST', url: '/api/v1/sessions', headers: { accept: 'text/event-stream' } }]);
  });

  test('of a session that is idle already has an empty stream, and requests nothing more', async () => {
    const { client, seen } = await clientOf((response) => {
      respond(response, { session: session('idle', null) });
      response.end();
    });
    expect(await all((await open(client)).stream)).toEqual([]);
    expect(seen).toHaveLength(1);
  });

  test('continues on the stream of the session after a lost connection, and still ends when the session is idle', async () => {
    const { client, seen } = await clientOf((response, _, number) => {
      if (number === 0) {
        respond(response, { session: session('running') }, envelope(delta(2)));
        breakOff(response);
      } else begin(response, envelope(delta(3)), envelope(idle(4)));
    });
    expect(await all((await open(client)).stream)).toEqual(['1:2', '1:3', '1:4']);
    expect(seen.map(({ method }) => method)).toEqual(['POST', 'GET']);
    expect(cursors(seen)).toEqual([null, 'turn_1:seq_2']);
  });

  test('starts after the cursor of the session if the connection is lost before the first chunk', async () => {
    const { client, seen } = await clientOf((response, _, number) => {
      if (number === 0) {
        respond(response, { session: session('running') });
        breakOff(response);
      } else begin(response, envelope(idle(2)));
    });
    expect(await all((await open(client)).stream)).toEqual(['1:2']);
    expect(cursors(seen)).toEqual([null, 'turn_1:seq_1']);
  });

  test('is repeated with the same idempotency key if the service does not respond', async () => {
    const { client, seen } = await clientOf((response, _, number) => {
      if (number === 0) return problem(response, 503, 'unavailable');
      respond(response, { session: session('running') }, envelope(idle(2)));
      response.end();
    });
    await open(client);
    expect(seen).toHaveLength(2);
    expect(seen[1]!.headers['idempotency-key']).toBe(seen[0]!.headers['idempotency-key']);
  });

  test('fails if the response ends before the session, and with the error of a refusal', async () => {
    const cut = await clientOf((response) => {
      response.writeHead(201, { 'content-type': 'text/event-stream' });
      response.end('event: session\ndata: {"ses');
    });
    await expect(open(cut.client, { maxRetries: 0 })).rejects.toThrow('ended before its first event');
    const refused = await clientOf((response) => problem(response, 404, 'not_found'));
    await expect(open(refused.client)).rejects.toThrow(NotFoundError);
  });

  test('ends its request when the caller aborts', async () => {
    const closed = Promise.withResolvers<void>();
    const { client } = await clientOf((response) => {
      response.on('close', closed.resolve);
      respond(response, { session: session('running') }, envelope(delta(2)));
    });
    const over = new AbortController();
    const { stream } = await open(client, { signal: over.signal });
    const reading = all(stream);
    over.abort(new Error('enough'));
    await expect(reading).rejects.toThrow('enough');
    await closed.promise;
  });
});
