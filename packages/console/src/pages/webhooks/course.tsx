// How the receiver did in the last 24 hours: accepted and failed requests, and how long it took to respond.

import { useApiQuery } from '../../data/organization.tsx';
import { percent } from '../../lib/text-format.ts';
import { units, usePointLabel } from '../../ui/analytics-time.ts';
import { BarChart, LineChart } from '../../ui/chart.tsx';
import { Await } from '../../ui/page.tsx';
import { duration } from '../../ui/time.tsx';
import { number } from '../sessions/session-text.ts';
import './webhooks.css';

const AGAIN_MS = 15_000;

export interface Delivered {
  attempts: number;
  failed: number;
}

/** By environment: `undefined` of those without a request in the last 24 hours. */
export function useDelivered(): ReadonlyMap<string, Delivered> {
  const { data } = useApiQuery(
    ['analytics', 'webhooks'],
    (client) => client.analytics.get({ groupBy: 'environment', step: 'hour' }),
    { everyMs: AGAIN_MS },
  );
  return new Map(
    data?.groups.filter(({ webhooks }) => webhooks.attempts > 0).map(({ group, webhooks }) => [group, webhooks]),
  );
}

/** `99.2% of 1,204` */
export function deliveredText({ attempts, failed }: Delivered): string {
  return `${percent((attempts - failed) / attempts)} of ${number(attempts)}`;
}

export function DeliveryCharts({ environment }: { environment: string }) {
  const pointLabel = usePointLabel();
  const query = useApiQuery(
    ['analytics', 'webhooks', environment],
    (client) => client.analytics.get({ environment, step: 'hour' }),
    { everyMs: AGAIN_MS },
  );
  return (
    <Await query={query}>
      {({ total, points }) =>
        total.webhooks.attempts > 0 && (
          <div className="columns">
            <section className="card accepted-chart">
              <BarChart
                title="Requests by hour"
                total={`${deliveredText(total.webhooks)} accepted in 24 hours`}
                series={['Accepted', 'Failed']}
                bars={points.map((point) => ({
                  label: pointLabel(point, 'hour'),
                  values: [point.webhooks.attempts - point.webhooks.failed, point.webhooks.failed],
                }))}
                format={number}
                unit={units.hour}
              />
            </section>
            <section className="card">
              <LineChart
                title="Response time"
                {...(total.webhookDuration.p95Ms !== null && {
                  total: `95% within ${duration(total.webhookDuration.p95Ms)}`,
                })}
                series={['Median', '95th percentile']}
                points={points.map((point) => ({
                  label: pointLabel(point, 'hour'),
                  values: [point.webhookDuration.p50Ms, point.webhookDuration.p95Ms],
                }))}
                format={duration}
                unit={units.hour}
              />
            </section>
          </div>
        )
      }
    </Await>
  );
}
