// A conversation outgrows its model. Signalbox replaces the older messages by a summary, for the model only: the session keeps every
// message, and the conversation continues.
import type { Session } from '@signalbox/client';
import type { Stage } from '../stage.ts';
import { row } from '../terminal.ts';

/** Very small, so that a week of readings is too long. Real models read a hundred times as much. */
const CONTEXT_TOKENS = 1_000;

const days = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
const messages = [
  'I send you the temperatures of my greenhouse every day. The limit is 27 degrees. Sensor B is broken, so never rely on it.',
  ...days.map((day, index) => `${day}:\n${readingsOf(index)}`),
  'Which sensor is broken, and what is the limit?',
];

export async function long(stage: Stage): Promise<Session> {
  const { client } = stage;
  const agent = await stage.createAgent({
    name: 'Greenhouse keeper',
    instructions: 'Answer in one sentence.',
    model: {
      ...stage.model('keeper', [
        { text: 'I will watch the limit of 27 degrees, without sensor B.', tokenDelayMs: 20 },
        ...days.map((day) => ({ text: `${day} is noted.`, tokenDelayMs: 20 })),
        { text: 'Sensor B is broken, and the limit is 27 degrees.', tokenDelayMs: 20 },
      ]),
      contextTokens: CONTEXT_TOKENS,
    },
  });

  const unsent = messages.slice(1);
  const session = await stage.converse(agent, messages[0]!, {
    async onIdle(sessionId) {
      const content = unsent.shift();
      if (content === undefined) return void (await client.sessions.close(sessionId));
      row('customer', content.split('\n')[0]!.replace(/:$/, ': a reading every quarter of an hour'));
      await client.sessions.sendMessage(sessionId, { content });
    },
  });

  let kept = 0;
  for await (const { role } of client.sessions.messages(session.sessionId)) if (role === 'user') kept += 1;
  row('transcript', `${kept} of ${messages.length} messages of the customer are still in the session`);
  return session;
}

/** Whole degrees, for each quarter of an hour of the day. */
function readingsOf(day: number): string {
  const readings = Array.from({ length: 96 }, (_, index) => 18 + day / 2 + 5 * Math.sin((index * Math.PI) / 96));
  return readings.map(Math.round).join(' ');
}
