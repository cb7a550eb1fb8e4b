// Deliveries per second of 200 sessions, one chunk each, to a receiver that responds at once. The dispatcher runs in this process,
// like the limit: a loop that only posts the bytes and headers of one delivery to the same receiver, 200 at a time.
//
// A session's next chunk is committed while its delivery is in flight, so there is always exactly one to send. The cost of these
// commits is part of ours: every delivery needs a commit before it. The processor time is that of this process, which does both.
import type { EgressRequest } from '../packages/server/src/egress/egress.ts';
import { startDeliveries } from './support/deliveries.ts';
import { type Benchmark, growthPerSecond, measurePairs, ratePerSecond, startChild } from './support/harness.ts';
import { createPoster } from './support/poster.ts';
import { rowOfSamples } from './support/table.ts';

const SESSIONS = 200;

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
    const pairs = await measurePairs(
      async () => {
        writer.start(sessionIds);
        const [before, already] = [process.cpuUsage(), delivered];
        const perSecond = await growthPerSecond(() => delivered);
        const processorMicros = microsSince(before) / (delivered - already);
        await writer.stop();
        await deliveries.drained(['production']);
        return { perSecond, processorMicros };
      },
      async () => {
        const [before, already] = [process.cpuUsage(), posted];
        const perSecond = await ratePerSecond(SESSIONS, async () => {
          await post(example!);
          posted += 1;
        });
        return { perSecond, processorMicros: microsSince(before) / (posted - already) };
      },
    );
    await deliveries.stop();
    await receiver.stop();
    return [
      rowOfSamples({ name: 'webhooks', unit: 'deliveries/s', target: '≥ 0.50' }, pairs, ({ perSecond }) => perSecond),
      rowOfSamples(
        { name: 'webhooks, processor time', unit: 'µs a delivery', target: '≤ 100 µs' },
        pairs,
        ({ processorMicros }) => processorMicros,
      ),
    ];
  },
};

function microsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return user + system;
}
