// The agent's model is down, and so is its fallback. The session waits, costs nothing, and continues by itself when the fallback is
// back: the message is not sent again.
import type { ScriptStep, Session } from '@signalbox/client';
import type { Stage } from '../stage.ts';
import { row } from '../terminal.ts';

/** The script of a model: a step for each model call of the session. */
const down: ScriptStep = { failWith: 'unavailable' };
// Both models, five times each, and the first once more.
const CALLS_WHILE_DOWN = 11;

export async function outage(stage: Stage): Promise<Session> {
  const agent = await stage.createAgent({
    name: 'Help desk',
    instructions: 'Answer in one sentence.',
    model: {
      ...stage.model('first-choice', [down]),
      fallbacks: [
        {
          provider: 'scripted',
          model: 'fallback',
          settings: {
            script: [
              ...Array.from({ length: CALLS_WHILE_DOWN }, () => down),
              { text: 'We are open until six today. Thank you for your patience.', tokenDelayMs: 50 },
            ],
          },
        },
      ],
    },
  });
  row('outage', 'each attempt calls both models; after about 8 seconds the session waits for them, 15 to 30 seconds');

  const session = await stage.converse(agent, 'When do you close today?');

  for await (const { operations } of stage.client.sessions.turns(session.sessionId)) {
    for (const { kind, name, status } of operations) if (kind === 'model') row('timeline', `${name} ${status}`);
  }
  return session;
}
