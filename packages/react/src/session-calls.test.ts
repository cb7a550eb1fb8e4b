import type { Signalbox } from '@signalbox/client';
import { expect, test } from 'vitest';
import { mayDecide, turnOfMessage } from './session-calls.ts';

/** A client whose responses are these, in order: the turns of the messages, newest first, and then the turn of the session. */
function clientOf(responses: { messages: (number | null)[]; turn: number }[]) {
  let at = -1;
  const sessions = {
    messages: async () => {
      at += 1;
      return { data: responses[at]!.messages.map((turn, index) => ({ messageId: `msg_${index}`, turn })) };
    },
    get: async () => ({ turn: responses[at]!.turn }),
  };
  return { sessions } as unknown as Signalbox;
}

const sent = { session: { sessionId: 'ses_1', turn: 1 }, messageId: 'msg_0' } as Parameters<typeof turnOfMessage>[1];

test.each([
  ['has started', [{ messages: [2, 1], turn: 2 }], 2],
  ['is the next one', [{ messages: [null, 1], turn: 1 }], 2],
  ['follows another queued one', [{ messages: [null, null, 1], turn: 1 }], 3],
  [
    'starts while it is looked for',
    [
      { messages: [null, 1], turn: 2 },
      { messages: [2, 1], turn: 2 },
    ],
    2,
  ],
  [
    'gets nearer while it is looked for',
    [
      { messages: [null, null, 1], turn: 2 },
      { messages: [null, 2, 1], turn: 2 },
    ],
    3,
  ],
])('the turn of a message that %s is known', async (_, responses, turn) => {
  expect(await turnOfMessage(clientOf(responses), sent)).toBe(turn);
});

test.each([
  [{ status: 'pending', refusal: null }, true],
  [{ status: 'pending', refusal: { code: 'not_an_approver' } }, false],
  // Decided by someone else, or cancelled, since the page has read of it.
  [{ status: 'approved', refusal: null }, false],
  [{ status: 'denied', refusal: null }, false],
  [{ status: 'cancelled', refusal: null }, false],
])('of the approval %j, a page may decide: %s', async (approval, may) => {
  const client = { approvals: { get: async () => approval } } as unknown as Signalbox;
  expect(await mayDecide(client, 'op_1')).toBe(may);
});
