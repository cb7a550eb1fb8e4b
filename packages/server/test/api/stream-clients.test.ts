// Clients of Server-Sent Events that people use already, on the stream of a session: they resume after a cut and see the end.
import type { Chunk, Envelope } from '@signalbox/client';
import { EventSource } from 'eventsource';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});

/** What a client makes of the events up to the end of the session; rejects with an error from which it does not recover. */
type Read = (url: string, fetch: typeof globalThis.fetch) => Promise<{ id: string; data: string }[]>;

const clients: Record<string, Read> = {
  EventSource: (url, fetch) =>
    new Promise((resolve, reject) => {
      const events: { id: string; data: string }[] = [];
      const source = new EventSource(url, { fetch: (input, init) => fetch(String(input), init as RequestInit) });
      onTestFinished(() => source.close());
      source.addEventListener('session.chunks', ({ lastEventId, data }) => events.push({ id: lastEventId, data }));
      source.addEventListener('error', ({ code }) => {
        if (source.readyState !== source.CLOSED) return;
        // With 204 a client must not connect again.
        if (code === 204) resolve(events);
        else reject(new Error(`closed by a response with status ${code}`));
      });
    }),
  async 'fetch-event-source'(url, fetch) {
    const { fetchEventSource } = await import('@microsoft/fetch-event-source');
    vi.stubGlobal('window', globalThis);
    vi.stubGlobal('document', { removeEventListener() {} });
    onTestFinished(() => void vi.unstubAllGlobals());
    const events: { id: string; data: string }[] = [];
    await fetchEventSource(url, {
      fetch,
      openWhenHidden: true,
      onmessage: ({ event, id, data }) => void (event === 'session.chunks' && events.push({ id, data })),
      onerror: () => 1,
    });
    return events;
  },
};

const encoder = new TextEncoder();

/** A network that cuts the first connections after so many events, and tells the client to connect again soon. */
function cutting(...cuts: number[]) {
  const resumedAt: (string | null)[] = [];
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set('authorization', `Bearer ${service.adminKey}`);
    resumedAt.push(headers.get('last-event-id'));
    const over = new AbortController();
    const signal = init?.signal ? AbortSignal.any([init.signal, over.signal]) : over.signal;
    const response = await globalThis.fetch(input, { ...init, headers, signal });
    const cut = cuts.shift();
    if (!response.body || cut === undefined) return response;
    // A generator is asked for one part at a time, so what comes before the cut is always read.
    const parts = async function* () {
      yield encoder.encode('retry: 1\n\n');
      let left = cut;
      for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
        for (const part of text.split(/(?<=\n\n)/)) {
          // In the middle of an event.
          yield encoder.encode(left === 0 ? part.slice(0, part.length / 2) : part);
          if (part.endsWith('\n\n')) left -= 1;
          if (left >= 0) continue;
          over.abort();
          throw new TypeError('the network was cut');
        }
      }
    };
    const body = ReadableStream.from(parts()) as ReadableStream<Uint8Array<ArrayBuffer>>;
    const cutResponse = new Response(body, response);
    // A response that was built has no URL of its own.
    Object.defineProperty(cutResponse, 'url', { value: response.url });
    return cutResponse;
  };
  return { fetch, resumedAt };
}

describe.each(Object.keys(clients))('%s', (name) => {
  const read = clients[name]!;

  test('reads a session that runs, resumes after its last event at each cut, and stops at the end', async () => {
    const { client } = service;
    // Each word is a commit of its own, for the cuts to come between.
    const script = [{ text: 'one two three four five six', reasoning: 'hm', tokenDelayMs: 60 }];
    const { agentId } = await client.agents.create({
      name: 'Scripted',
      model: { provider: 'scripted', model: 'test', settings: { script } },
      showReasoning: true,
    });
    const { sessionId } = await client.sessions.open({
      agentId,
      environment: 'production',
      input: 'go',
      closeOnIdle: true,
    });
    const { fetch, resumedAt } = cutting(1, 2);
    const events = await read(`${service.url}/api/v1/sessions/${sessionId}/stream`, fetch);
    const envelopes = events.map(({ data }) => JSON.parse(data) as Envelope);
    expect(events.map(({ id }) => id)).toEqual(envelopes.map(({ cursor }) => cursor));
    const chunks = envelopes.flatMap((envelope): Chunk[] => envelope.chunks);
    const { data } = await client.sessions.chunks(sessionId, { limit: 1000 });
    expect(chunks).toEqual(data.flatMap((envelope) => envelope.chunks));
    expect(chunks.at(-1)).toMatchObject({ type: 'session.status', status: 'completed' });
    expect(resumedAt.slice(0, 3)).toEqual([null, envelopes[0]!.cursor, envelopes[2]!.cursor]);
  });

  test('a stream of some types stops after a session whose last chunks are of other types', async () => {
    const { client } = service;
    const { agentId } = await client.agents.create({ name: 'Echo', model: 'scripted/echo' });
    const opened = await client.sessions.openAndStream({ agentId, environment: 'production', input: 'go' });
    for await (const _ of opened.stream);
    // A commit of its own.
    await client.sessions.close(opened.session.sessionId);
    const { fetch } = cutting();
    const url = `${service.url}/api/v1/sessions/${opened.session.sessionId}/stream`;
    const events = await read(`${url}?types=message.chunk`, fetch);
    expect(events.flatMap(({ data }) => (JSON.parse(data) as Envelope).chunks)).toMatchObject([{ delta: 'go' }]);
  });
});
