// Deliveries per second of 200 sessions, one chunk each, to a receiver that responds at once. The dispatcher runs in this process,
// like the limit: a loop that only posts the bytes and headers of one delivery to the same receiver, 200 at a time. The floor
// (support/webhook-floor.ts) also runs here: a bare program with the same statements, commits and posts.
//
// A session's next chunk is committed while its delivery is in flight, so there is always exactly one to send. The cost of these
// commits is part of ours, and of the floor: every delivery needs a commit before it. The CPU time is that of this process,
// which does both; compared with the floor, that of the database is added.
import type { EgressRequest } from '../packages/server/src/egress/exchange.ts';
import { startDeliveries } from './support/deliveries.ts';
import { type Benchmark, growthPerSecond, measurePairs, ratePerSecond, startChild } from './support/harness.ts';
import { createPoster } from './support/poster.ts';
import { rowOfSamples } from './support/table.ts';
import { createWebhookFloor } from './support/webhook-floor.ts';

const SESSIONS = 200;
const FLOOR_MS = 2_000;
// As the service stores an accepted attempt.
const ATTEMPT = JSON.stringify({
  attempt: 1,
  at: new Date(0).toISOString(),
  durationMs: 10,
  secretVersion: 1,
  sent: { hex: '0'.repeat(64), standard: `v1,${'0'.repeat(43)}=`, version: '0.1.0' },
  status: 200,
});

export const webhooks: Benchmark = {
  name: 'webhooks',
  async run() {
    const deliveries = await startDeliveries();
    const { bench, writer } = deliveries;
    const receiver = await startChild('receiver-process.ts');
    await bench.call('POST', '/webhook_subscriptions', { environment: 'production', url: receiver.hello });
    const sessionIds = await deliveries.open(SESSIONS, 'production');
    let delivered = 0;
    let example: EgressRequest | undefined;
    deliveries.onSent = (sessionId, request) => {
      example ??= request;
      writer.next(sessionId);
    };
    deliveries.onAccepted = () => {
      delivered += 1;
    };

    const post = createPoster(receiver.hello, SESSIONS);
    let posted = 0;
    const floor = await createWebhookFloor(bench.databaseUrl, SESSIONS, () => post(example!), ATTEMPT);
    const used = async () => ({ ...process.cpuUsage(), database: 1_000 * (await bench.usage()).databaseMs });
    async function sampleOf(count: () => number, act: () => Promise<number>): Promise<Sample> {
      const [before, already] = [await used(), count()];
      const perSecond = await act();
      const [after, done] = [await used(), count() - already];
      const ownMicros = after.user + after.system - before.user - before.system;
      return {
        perSecond,
        ownMicros: ownMicros / done,
        allMicros: (ownMicros + after.database - before.database) / done,
      };
    }
    const sampleLimit = () =>
      sampleOf(
        () => posted,
        () =>
          ratePerSecond(SESSIONS, async () => {
            await post(example!);
            posted += 1;
          }),
      );
    let floored = 0;
    const sampleFloor = () =>
      sampleOf(
        () => floored,
        async () => {
          const begin = performance.now();
          const done = await floor.run(FLOOR_MS);
          floored += done;
          return (1_000 * done) / (performance.now() - begin);
        },
      );
    const pairs = await measurePairs(
      async () => {
        writer.start(sessionIds);
        const sample = await sampleOf(
          () => delivered,
          () => growthPerSecond(() => delivered),
        );
        await writer.stop();
        await deliveries.drained(['production']);
        return sample;
      },
      async () => ({ limit: await sampleLimit(), floor: await sampleFloor() }),
    );
    await floor.close();
    await deliveries.stop();
    await receiver.stop();
    const ofLimit = pairs.map(({ ours, limit: { limit } }) => ({ ours, limit }));
    const ofFloor = pairs.map(({ ours, limit: { floor } }) => ({ ours, limit: floor }));
    const rate = ({ perSecond }: Sample) => perSecond;
    return [
      rowOfSamples({ name: 'webhooks', unit: 'deliveries/s', target: '≥ 0.50' }, ofLimit, rate),
      rowOfSamples(
        { name: 'webhooks, CPU time', unit: 'µs a delivery', target: '≤ 100 µs' },
        ofLimit,
        ({ ownMicros }) => ownMicros,
      ),
      rowOfSamples({ name: 'webhooks, floor', unit: 'deliveries/s', target: '≥ 0.60' }, ofFloor, rate),
      rowOfSamples(
        { name: 'webhooks, floor, CPU time', unit: 'µs a delivery', target: '≤ 1.60' },
        ofFloor,
        ({ allMicros }) => allMicros,
      ),
    ];
  },
};

interface Sample {
  perSecond: number;
  /** CPU time of this process for one delivery. */
  ownMicros: number;
  /** With that of the database. */
  allMicros: number;
}
