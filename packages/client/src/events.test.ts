import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { chainOf } from '../test/event-records.ts';
import { clientOf, json, problem } from '../test/fake-service.ts';
import { type Event, PermissionError } from './index.ts';

const log = chainOf(9);
const query = (url: string) => Object.fromEntries(new URL(url, 'http://x').searchParams);
const lines = (events: readonly Event[]) => events.map((event) => `${JSON.stringify(event)}\n`).join('');

function begin(response: ServerResponse): ServerResponse {
  return response.writeHead(200, { 'content-type': 'application/jsonl; charset=utf-8' });
}

/** Cuts the connection as a crash does, but only after everything written was sent. */
function breakOff(response: ServerResponse, text: string): void {
  response.write(text, () => setImmediate(() => response.socket?.destroy()));
}

async function sequences(events: AsyncIterable<Event>, most = Number.POSITIVE_INFINITY): Promise<number[]> {
  const seen: number[] = [];
  for await (const { sequence } of events) if (seen.push(sequence) === most) break;
  return seen;
}

describe('an export', () => {
  test('resumes after the last complete record if the connection is cut', async () => {
    const { client, seen } = await clientOf((response, _, number) => {
      if (number === 0) breakOff(begin(response), `${lines(log.slice(0, 4))}${lines(log.slice(4, 5)).slice(0, 50)}`);
      else if (number === 1) problem(response, 503, 'unavailable');
      else begin(response).end(lines(log.slice(4)));
    });
    expect(await sequences(client.events.export({ environment: 'production' }))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(seen.map(({ url }) => query(url))).toEqual([
      { environment: 'production' },
      { environment: 'production', afterSequence: '4' },
      { environment: 'production', afterSequence: '4' },
    ]);
  });

  test('is complete even if characters are cut between two parts', async () => {
    const bytes = Buffer.from(lines(log));
    const { client } = await clientOf(async (response) => {
      begin(response);
      for (let at = 0; at < bytes.length; at += 97) {
        response.write(bytes.subarray(at, at + 97));
        await new Promise(setImmediate);
      }
      response.end();
    });
    expect(await client.events.verify()).toMatchObject({ ok: true, count: 9 });
  });

  test('is verified as it arrives, and ends at the first invalid record', async () => {
    const { client } = await clientOf((response) => {
      begin(response).end(lines(log.with(5, { ...log[5]!, type: 'agent.archived' })));
    });
    expect(await client.events.verify()).toMatchObject({ ok: false, sequence: 6, problem: 'changed', count: 5 });
  });

  test('that is refused fails immediately', async () => {
    const { client, seen } = await clientOf((response) => problem(response, 403, 'insufficient_permission'));
    await expect(sequences(client.events.export())).rejects.toThrow(PermissionError);
    expect(seen).toHaveLength(1);
  });

  test('is downloaded unchanged, and errors if it is cut', async () => {
    const { client, seen } = await clientOf((response, _, number) => {
      if (number === 0) begin(response).end('sequence\r\n1\r\n');
      else breakOff(begin(response), 'sequence\r\n');
    });
    const text = async () => new Response(await client.events.download({ format: 'csv' })).text();
    expect(await text()).toBe('sequence\r\n1\r\n');
    await expect(text()).rejects.toThrow();
    expect(query(seen[0]!.url)).toEqual({ format: 'csv' });
  });
});

describe('following', () => {
  const page = (response: ServerResponse, data: readonly Event[], nextCursor: string) =>
    json(response, 200, { data, page: { hasMore: false, nextCursor } });

  test('keeps waiting for records, keeps its position over empty pages, and continues after a failure', async () => {
    const { client, seen } = await clientOf((response, _, number) => {
      if (number === 0) page(response, log.slice(0, 2), 'a');
      else if (number === 1) page(response, [], 'b');
      else if (number === 2) response.socket?.destroy();
      else page(response, log.slice(2, 4), 'c');
    });
    expect(await sequences(client.events.follow({ type: 'agent.created' }), 4)).toEqual([1, 2, 3, 4]);
    const asked = { type: 'agent.created', order: 'asc', wait: '20' };
    expect(seen.map(({ url }) => query(url))).toEqual([
      asked,
      { ...asked, cursor: 'a' },
      { ...asked, cursor: 'b' },
      { ...asked, cursor: 'b' },
    ]);
  });

  test('stops at its signal while it waits', async () => {
    const stop = new AbortController();
    const { client } = await clientOf((response, _, number) => {
      if (number === 0) page(response, log.slice(0, 1), 'a');
      else stop.abort(new Error('enough'));
    });
    await expect(sequences(client.events.follow({}, { signal: stop.signal }))).rejects.toThrow('enough');
  });
});
