// Spans on their way to a collector, which is a server of the test.
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { idle } from '../../test/support/idle.ts';
import { createManualClock, type ManualClock } from '../../test/support/manual-clock.ts';
import { createLog } from '../lib/log.ts';
import { createSpanExport, type FinishedSpan, type SpanExport } from './otlp.ts';

interface Received {
  headers: IncomingMessage['headers'];
  body: Buffer;
}

let status: number;
let received: Received[];
let lines: string[];
let clock: ManualClock;
let endpoint: string;
let exported: SpanExport;
const server = createServer(async (request, response) => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  received.push({ headers: request.headers, body: Buffer.concat(parts) });
  response.writeHead(status).end('secret words of the collector');
});

beforeEach(async () => {
  [status, received, lines] = [200, [], []];
  clock = createManualClock();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  exported = start('none');
});
afterEach(async () => {
  await exported.stop();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function start(compression: 'none' | 'gzip'): SpanExport {
  const log = createLog({ level: 'info', destination: { write: (line) => void lines.push(line) } });
  return createSpanExport({ clock, log }, { endpoint, headers: { 'x-key': 'k' }, compression });
}

const span = (n: number, more: Partial<FinishedSpan> = {}): FinishedSpan => ({
  traceId: 'a'.repeat(32),
  spanId: n.toString(16).padStart(16, '0'),
  parentSpanId: undefined,
  name: `span ${n}`,
  kind: 'server',
  startMs: 1_700_000_000_000.25,
  endMs: 1_700_000_000_001.5,
  attributes: {},
  content: {},
  hasFailed: false,
  ...more,
});
const add = (count: number) => {
  for (let n = 0; n < count; n += 1) exported.add(span(n));
};
const spansIn = ({ body }: Received) => JSON.parse(body.toString()).resourceSpans[0].scopeSpans[0].spans;
const messages = () => lines.map((line) => JSON.parse(line).msg.split(';')[0]);

test('a span has the form that the protocol prescribes', async () => {
  const attributes = { text: 'a', yes: true, whole: 3, part: 0.5, list: ['x', 'y'] };
  exported.add(span(1, { attributes, parentSpanId: 'b'.repeat(16), hasFailed: true }));
  await exported.stop();
  const [only] = received;
  expect(only!.headers).toMatchObject({ 'content-type': 'application/json', 'x-key': 'k' });
  expect(JSON.parse(only!.body.toString()).resourceSpans[0].resource.attributes[0]).toEqual({
    key: 'service.name',
    value: { stringValue: 'signalbox' },
  });
  expect(spansIn(only!)).toEqual([
    {
      traceId: 'a'.repeat(32),
      spanId: '0000000000000001',
      parentSpanId: 'b'.repeat(16),
      name: 'span 1',
      kind: 2,
      startTimeUnixNano: '1700000000000250000',
      endTimeUnixNano: '1700000000001500000',
      attributes: [
        { key: 'text', value: { stringValue: 'a' } },
        { key: 'yes', value: { boolValue: true } },
        { key: 'whole', value: { intValue: 3 } },
        { key: 'part', value: { doubleValue: 0.5 } },
        { key: 'list', value: { arrayValue: { values: [{ stringValue: 'x' }, { stringValue: 'y' }] } } },
      ],
      status: { code: 2 },
    },
  ]);
});

test('spans are sent some seconds after the first one, or at once when there are 512', async () => {
  add(3);
  await clock.advance(4_999);
  expect(received).toEqual([]);
  await clock.advance(1);
  expect(received.map((one) => spansIn(one).length)).toEqual([3]);
  add(600);
  await idle();
  expect(received.map((one) => spansIn(one).length)).toEqual([3, 512]);
});

test('spans of an outage are kept until the collector is back, at most 2,048, and the log says so once', async () => {
  status = 503;
  add(3_000);
  await clock.passUntil(() => received.length >= 2);
  expect(received.every((one) => spansIn(one)[0].name === 'span 0')).toBe(true);
  [status, received] = [200, []];
  const arrived = () => new Set(received.flatMap(spansIn).map(({ spanId }) => spanId)).size;
  await clock.passUntil(() => arrived() === 2_048);
  expect(messages()).toEqual(['the collector does not accept spans', 'the collector accepts spans again']);
  expect(lines.join()).not.toContain('secret');
});

test('content is sent in requests of limited size, and while much of it waits, spans are kept without theirs', async () => {
  const content = { 'gen_ai.input.messages': 'x'.repeat(1024 * 1024) };
  status = 503;
  for (let n = 0; n < 20; n += 1) exported.add(span(n, { content }));
  await clock.passUntil(() => received.length >= 1);
  [status, received] = [200, []];
  const arrived = () => received.flatMap(spansIn) as { attributes: { key: string }[] }[];
  await clock.passUntil(() => arrived().length === 20);
  expect(arrived().map(({ attributes }) => attributes.map(({ key }) => key).join())).toEqual([
    ...Array(16).fill('gen_ai.input.messages'),
    ...Array(4).fill('signalbox.content_dropped'),
  ]);
  expect(Math.max(...received.map(({ body }) => body.length))).toBeLessThan(2.1 * 1024 * 1024);
  // What was sent makes room again, and enough of it is sent at once.
  received = [];
  for (const n of [1, 2]) exported.add(span(n, { content }));
  await idle();
  expect(arrived().map(({ attributes }) => attributes[0]!.key)).toEqual(Array(2).fill('gen_ai.input.messages'));
});

test('spans that the collector refuses are not sent again', async () => {
  status = 400;
  for (const n of [1, 2]) {
    exported.add(span(n));
    await clock.advance(5_000);
    expect(received).toHaveLength(n);
    expect(clock.sleepers).toBe(0);
  }
  expect(spansIn(received[1]!).map(({ name }: FinishedSpan) => name)).toEqual(['span 2']);
});

test('spans are compressed if the operator wants it', async () => {
  exported = start('gzip');
  add(2);
  await exported.stop();
  const [only] = received;
  expect(only!.headers['content-encoding']).toBe('gzip');
  expect(spansIn({ ...only!, body: gunzipSync(only!.body) })).toHaveLength(2);
});
