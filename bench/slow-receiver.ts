// Deliveries per second of healthy sessions while the receivers of other subscriptions accept requests and never respond, so that each
// attempt there times out. Ten environments with 20 sessions each; two of them hang. The limit: the other eight alone.
import { setTimeout as sleep } from 'node:timers/promises';
import { startDeliveries } from './support/deliveries.ts';
import { type Benchmark, growthPerSecond, measurePairs, startChild } from './support/harness.ts';
import { rowOf } from './support/table.ts';

const ENVIRONMENTS = 10;
const HANGING = 2;
const SESSIONS_EACH = 20;
// Until the dispatcher notices a change by another process.
const POLL_MS = 1_000;

export const slowReceiver: Benchmark = {
  name: 'slow-receiver',
  async run() {
    const deliveries = await startDeliveries();
    const { bench, writer } = deliveries;
    const receiver = await startChild('receiver-process.ts');
    const names = Array.from({ length: ENVIRONMENTS }, (_, at) => `environment-${at}`);
    const [hanging, healthy] = [names.slice(0, HANGING), names.slice(HANGING)];
    const sessionsOf = new Map<string, string[]>();
    for (const environment of names) {
      const url = hanging.includes(environment) ? `${receiver.hello}hang` : receiver.hello;
      await bench.call('POST', '/environments', { name: environment });
      await bench.call('POST', '/webhook_subscriptions', { environment, url });
      sessionsOf.set(environment, await deliveries.open(SESSIONS_EACH, environment));
    }
    const sessionsIn = (environments: readonly string[]) => environments.flatMap((one) => sessionsOf.get(one)!);
    let delivered = 0;
    deliveries.onSent = (sessionId) => writer.next(sessionId);
    deliveries.onAccepted = () => {
      delivered += 1;
    };

    async function rateOf(environments: readonly string[]): Promise<number> {
      writer.start(sessionsIn(environments));
      const rate = await growthPerSecond(() => delivered);
      await writer.stop();
      await deliveries.drained(healthy);
      return rate;
    }
    async function setHanging(status: 'enabled' | 'paused'): Promise<void> {
      for (const environment of hanging) await bench.call('PATCH', `/webhook_subscriptions/${environment}`, { status });
    }

    const pairs = await measurePairs(
      async () => {
        // Earlier failures are excluded: all of their sessions hang, or are retried after the timeout.
        await setHanging('enabled');
        await sleep(POLL_MS);
        const rate = await rateOf(names);
        await setHanging('paused');
        return rate;
      },
      () => rateOf(healthy),
    );
    await receiver.stop();
    await deliveries.stop();
    return [rowOf({ name: 'slow-receiver', unit: 'deliveries/s', target: '≥ 0.90' }, pairs)];
  },
};
