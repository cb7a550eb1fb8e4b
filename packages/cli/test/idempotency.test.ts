// kill -9 of nodes while clients make the same POST again and again with one Idempotency-Key, until somebody answers: each has
// its effect once, and everyone who asks hears the same answer, to the byte. (P1)
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Signalbox } from '@signalbox/client';
import { afterEach, expect, test } from 'vitest';
import {
  createOnceWorld,
  kindsOfPost,
  type OnceAnswer,
  type OncePost,
  postOnce,
} from '../../server/test/support/once.ts';
import { createTestDatabase } from '../../server/test/support/postgres.ts';
import { killing, numbersFrom, startNodes } from './support/nodes.ts';

const NODES = 2;
const TIMES_AT_ONCE = 3;
/** Posts that are made at a time, each of them by several clients. */
const LANES = 4;

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (let last = undo.pop(); last; last = undo.pop()) await last();
});

/** Takes every POST, and counts the tests of the subscription: they are of no Session. */
async function startReceiver() {
  const receiver = { url: '', tests: 0 };
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const part of request.setEncoding('utf8')) body += part;
    if (body.includes('"ses_test"')) receiver.tests += 1;
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  undo.push(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return receiver;
}

interface Posted {
  kind: string;
  idempotencyKey: string;
  post: OncePost;
  answers: OnceAnswer[];
}

test('a POST that is made until it is answered has its effect once, and one answer, whoever is killed', {
  timeout: 120_000 + killing.times * 15_000,
}, async () => {
  const { seed } = killing;
  const times = Math.ceil(killing.times / 2);
  const random = numbersFrom(seed);
  const database = await createTestDatabase();
  undo.push(() => database.drop());
  const nodes = await startNodes(NODES, database);
  undo.push(() => nodes.end());
  const { apiKey } = nodes;
  const client = new Signalbox({ apiKey, baseUrl: nodes.urls[0]!, maxRetries: 30 });
  const receiver = await startReceiver();
  const world = await createOnceWorld(client, receiver.url);
  const kinds = Object.entries(kindsOfPost);
  let answered = 0;
  let onAnswered = () => {};
  let kills = 0;

  async function untilAnswered(idempotencyKey: string, { path, body }: OncePost): Promise<OnceAnswer> {
    for (let turn = random(NODES); ; turn += 1) {
      const answer = await postOnce(nodes.urls[turn % NODES]!, { key: apiKey, idempotencyKey, path, body });
      if (!answer) continue;
      answered += 1;
      onAnswered();
      return answer;
    }
  }

  async function makePosts(lane: number): Promise<Posted[]> {
    const all: Posted[] = [];
    // Each kind once at least, and on for as long as somebody is to be killed.
    for (let round = 0; round < kinds.length / LANES || kills < times; round += 1) {
      const [kind, prepare] = kinds[(round * LANES + lane) % kinds.length]!;
      const idempotencyKey = `${lane}-${round}`;
      const post = await prepare(world, `post ${idempotencyKey}`);
      const asked = Array.from({ length: TIMES_AT_ONCE }, () => untilAnswered(idempotencyKey, post));
      all.push({ kind, idempotencyKey, post, answers: await Promise.all(asked) });
    }
    return all;
  }

  /** What acts outside is answered at most once: after a crash nobody knows whether it has acted, and it is not done again. */
  async function makeTests(): Promise<{ made: number; answered: number }> {
    const path = '/webhook_subscriptions/production/test';
    let made = 0;
    let answeredTests = 0;
    for (; made === 0 || kills < times; made += 1) {
      const ask = () => postOnce(nodes.urls[random(NODES)]!, { key: apiKey, idempotencyKey: `test ${made}`, path });
      const answers = (await Promise.all([ask(), ask(), ask()]))
        .concat(await ask())
        .filter((answer) => answer !== undefined);
      expect(new Set(answers.map(({ text }) => text)).size).toBeLessThanOrEqual(1);
      if (answers.length > 0) answeredTests += 1;
    }
    return { made, answered: answeredTests };
  }

  async function killNodes(): Promise<void> {
    for (; kills < times; kills += 1) {
      // Some answers later, in the middle of whatever is going on then.
      const at = answered + 5 + random(20);
      await new Promise<void>((resolve) => {
        onAnswered = () => {
          if (answered >= at) resolve();
        };
      });
      await nodes.kill(random(NODES));
    }
  }

  const lanes = Promise.all(Array.from({ length: LANES }, (_, lane) => makePosts(lane)));
  const [posted, tests] = await Promise.all([lanes.then((each) => each.flat()), makeTests(), killNodes()]);

  for (const { kind, idempotencyKey, post, answers } of posted) {
    const what = `${kind}, ${idempotencyKey}, seed ${seed}`;
    const again = await Promise.all(nodes.urls.map(() => untilAnswered(idempotencyKey, post)));
    const texts = [...answers, ...again].map(({ status, text }) => `${status} ${text}`);
    expect(answers[0]!.status, `${what}: ${answers[0]!.text}`).toBeLessThan(300);
    expect(new Set(texts).size, `answers of ${what}`).toBe(1);
    // `recover` and `rotate_secret` act on the one subscription, and others count there meanwhile.
    if (!sharesItsCount.has(kind)) expect(await post.effects(), `effects of ${what}`).toBe(1);
  }
  expect(receiver.tests, `tests sent, seed ${seed}`).toBeLessThanOrEqual(tests.made);
  expect(receiver.tests).toBeGreaterThanOrEqual(tests.answered);
  for (const kind of sharesItsCount) {
    const same = posted.filter((one) => one.kind === kind);
    const counts = await Promise.all(same.map(({ post }) => post.effects()));
    expect(Math.max(...counts), `effects of ${kind}, seed ${seed}`).toBe(same.length);
  }
});

const sharesItsCount = new Set(['recover deliveries', 'rotate a signing secret']);
