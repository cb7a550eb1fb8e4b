// From the commit of a chunk until its receiver has responded, with 200 sessions that get a chunk per second each, at different
// times. The limit: a bare POST of the same bytes, as often.
import type { EgressRequest } from '../packages/server/src/egress/exchange.ts';
import { startDeliveries } from './support/deliveries.ts';
import { type Benchmark, measurePairs, startChild } from './support/harness.ts';
import { createPoster } from './support/poster.ts';
import { quantile, rowOf } from './support/table.ts';

const SESSIONS = 200;
const EACH_MS = 1_000;
const SAMPLE_MS = 4_000;

export const webhookLatency: Benchmark = {
  name: 'webhook-latency',
  async run() {
    const deliveries = await startDeliveries();
    const { bench, writer } = deliveries;
    const receiver = await startChild('receiver-process.ts');
    await bench.call('POST', '/webhook_subscriptions', { environment: 'production', url: receiver.hello });
    const sessionIds = await deliveries.open(SESSIONS, 'production');
    let taken: number[] = [];
    let example: EgressRequest | undefined;
    const committedAt = new Map<string, number>();
    // Chunks that are committed during a delivery are sent together: the latency counts from the first of them.
    writer.onCommitted = (sessionId) => {
      if (!committedAt.has(sessionId)) committedAt.set(sessionId, performance.now());
    };
    deliveries.onSent = (_, request) => {
      example ??= request;
    };
    deliveries.onAccepted = (sessionId) => {
      taken.push(performance.now() - committedAt.get(sessionId)!);
      committedAt.delete(sessionId);
    };

    const post = createPoster(receiver.hello, SESSIONS);
    const pairs = await measurePairs(
      async () => {
        taken = [];
        writer.start([]);
        await inTurn((at) => writer.next(sessionIds[at]!));
        await writer.stop();
        await deliveries.drained(['production']);
        return taken;
      },
      async () => {
        const posts: Promise<void>[] = [];
        const bare: number[] = [];
        await inTurn(() => {
          const begin = performance.now();
          posts.push(post(example!).then(() => void bare.push(performance.now() - begin)));
        });
        await Promise.all(posts);
        return bare;
      },
    );
    await deliveries.stop();
    await receiver.stop();
    const row = (share: number, target: string) =>
      rowOf(
        { name: 'webhook-latency', unit: `ms, p${share * 100}`, target },
        pairs.map(({ ours, limit }) => ({ ours: quantile(ours, share), limit: quantile(limit, share) })),
      );
    return [row(0.5, '≤ 10 ms'), row(0.99, '≤ 50 ms over it')];
  },
};

/** Calls once for each session in every `EACH_MS`, evenly spread. */
async function inTurn(act: (session: number) => void): Promise<void> {
  const begin = performance.now();
  let calls = 0;
  while (performance.now() - begin < SAMPLE_MS) {
    for (; calls < ((performance.now() - begin) / EACH_MS) * SESSIONS; calls += 1) act(calls % SESSIONS);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
