// What follows the end of a model's outage: the sessions that wait for the model continue within seconds, and not all at once.
//
// Each response to a session that was parked, and to the call that found the model to be back, wakes two more: so 1, 2, 4, … of
// them call it, each number only after responses to those before. If it fails again, no more are woken. Any node may run them, and
// each node learns by a hint that it may call the model.
import { coalesced } from '../lib/coalesced.ts';
import type { Platform } from '../platform.ts';
import { wakeParked } from '../session-rows/parked.ts';
import type { Recovery } from './availability.ts';
import type { ModelCall } from './model/model.ts';

const WOKEN_BY_A_RESPONSE = 2;

export function createRecovery({ db, clock, wake, log }: Pick<Platform, 'db' | 'clock' | 'wake' | 'log'>): Recovery {
  /** How many to wake of each model, and a call that names it. */
  const wanted = new Map<string, { call: ModelCall; count: number }>();

  const wakeAll = coalesced(async () => {
    for (const [model, { call, count }] of wanted) {
      wanted.delete(model);
      const { organizationId, environment, config } = call;
      try {
        const sessionIds = await wakeParked(db, { organizationId, environment, config }, count, clock.now());
        for (const sessionId of sessionIds) wake.publish('runnable', { organizationId, sessionId });
      } catch (error) {
        log.warn({ err: error }, 'waking sessions after an outage failed; they continue by themselves');
      }
    }
  });

  return {
    responded(call, model) {
      // With each wake-up again, because hints may be lost.
      wake.publish('available', { organizationId: call.organizationId, model });
      const count = (wanted.get(model)?.count ?? 0) + WOKEN_BY_A_RESPONSE;
      wanted.set(model, { call, count });
      void wakeAll();
    },
    onElsewhere(listener) {
      wake.subscribe('available', (hint, from) => {
        if (hint && from !== undefined) listener(hint.model);
      });
    },
  };
}
