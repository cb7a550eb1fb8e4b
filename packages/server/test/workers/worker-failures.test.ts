// Turns of workers that fail: what the conversation keeps, and what a retry repeats.
import { type Message, type Turn, TurnFailedError } from '@signalbox/client';
import { expect, test } from 'vitest';
import { frameworkWorld, isEnded, pay, textOf } from '../support/framework-world.ts';
import { outline } from '../support/session-world.ts';

const world = frameworkWorld();
const { until, sessionOf } = world;
const textsOf = (messages: readonly Message[]) =>
  messages.map(
    ({ role, content }) => `${role}: ${content.map((part) => (part.type === 'text' ? part.text : part.type))}`,
  );
const retry = ({ sessionId }: { sessionId: string }) => world.service.client.sessions.retry(sessionId);
const endOf = (turn: number, count = 1) => {
  let ended = 0;
  return (chunk: Parameters<typeof isEnded>[0]) => {
    if (isEnded(chunk) && chunk.turn === turn) ended += 1;
    return ended === count;
  };
};

test('a turn that a worker fails is retried without its finished calls, and without the text of the failed step', async () => {
  let paid = 0;
  const seen: string[][] = [];
  let hasFailed = false;
  world.start({
    tools: { pay: () => ++paid },
    onTurn: async (turn) => {
      seen.push(textsOf(turn.messages));
      if (turn.messages.at(-1)?.role === 'user') {
        await turn.append('Paying. ');
        await turn.callTool('pay', { order: '1' });
      }
      if (!hasFailed) {
        hasFailed = true;
        await turn.append('Half a ');
        throw new TurnFailedError('out_of_paper', 'The printer is empty');
      }
      await turn.append('Printed.');
    },
  });
  const session = await world.open({ tools: [pay()] });
  await until(session, endOf(1));
  expect(await sessionOf(session)).toMatchObject({
    status: 'idle',
    stopReason: 'error',
    error: { code: 'out_of_paper', message: 'The printer is empty' },
  });
  await retry(session);
  const chunks = await until(session, endOf(1, 2));
  expect(paid).toBe(1);
  expect(seen).toEqual([['user: Pay 17'], ['user: Pay 17', 'assistant: Paying. ,tool_call', 'tool: tool_result']]);
  expect(outline(chunks)).toEqual([
    'running',
    '"Paying. "',
    'tool.call',
    'tool.result',
    '"Half a "',
    'message.reset 7',
    'turn.completed error',
    'idle',
    'running',
    '"Printed."',
    'turn.completed endTurn',
    'idle',
  ]);
  expect(await sessionOf(session)).toMatchObject({ status: 'idle', stopReason: 'endTurn', error: null, turn: 1 });
  const { data } = await world.service.client.sessions.messages(session.sessionId);
  expect(textsOf(data).at(-1)).toBe('assistant: Printed.');
});

test('a message that waits gets its turn after one that failed, and sees that turn', async () => {
  const seen: string[][] = [];
  let fail: () => void = () => {};
  const failing = new Promise<void>((resolve) => {
    fail = resolve;
  });
  world.start({
    onTurn: async (turn) => {
      seen.push(textsOf(turn.messages));
      if (turn.turn === 1) {
        await failing;
        throw new Error('No');
      }
      await turn.append('Yes.');
    },
  });
  const session = await world.open();
  await expect.poll(() => seen.length).toBe(1);
  await world.service.client.sessions.sendMessage(session.sessionId, { content: 'And 18' });
  fail();
  expect(textOf(await until(session, endOf(2)))).toBe('Yes.');
  expect(seen[1]).toEqual(['user: Pay 17', 'user: And 18']);
  await expect(retry(session)).rejects.toMatchObject({ code: 'turn_not_failed' });
});

test('a retry runs the newest agent: on another queue, and on a model of the service', async () => {
  const queues: string[] = [];
  const failing = async () => {
    throw new Error('No');
  };
  world.start({ onTurn: failing });
  const session = await world.open();
  await until(session, endOf(1));
  const { agentId } = session;
  const update = async (model: object | string) => {
    const { version } = await world.service.client.agents.get(agentId);
    await world.service.client.agents.update(agentId, { model: model as never, expectedVersion: version });
  };

  await update({ provider: 'worker', queue: `${world.queue}-b` });
  world.start({
    queue: `${world.queue}-b`,
    onTurn: async (turn: Turn) => {
      queues.push('b');
      await turn.append('Half');
      throw new Error('No again');
    },
  });
  await retry(session);
  await until(session, endOf(1, 2));
  expect(queues).toEqual(['b']);

  await update('scripted/echo');
  await retry(session);
  const chunks = await until(session, endOf(1, 3));
  expect(textOf(chunks)).toContain('Pay 17');
  expect(await sessionOf(session)).toMatchObject({ status: 'idle', stopReason: 'endTurn', error: null });

  // And back to a worker, which sees what the model of the service said.
  await update({ provider: 'worker', queue: `${world.queue}-c` });
  let messages: readonly Message[] = [];
  world.start({
    queue: `${world.queue}-c`,
    onTurn: (turn) => {
      messages = turn.messages;
    },
  });
  await world.service.client.sessions.sendMessage(session.sessionId, { content: 'Next' });
  await until(session, endOf(2));
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
});

test('two retries of a worker’s turn at once are one', async () => {
  let runs = 0;
  world.start({
    onTurn: async () => {
      runs += 1;
      if (runs === 1) throw new Error('No');
    },
  });
  const session = await world.open();
  await until(session, endOf(1));
  const results = await Promise.allSettled([retry(session), retry(session), retry(session)]);
  expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected', 'rejected']);
  await until(session, endOf(1, 2));
  expect(runs).toBe(2);
});
