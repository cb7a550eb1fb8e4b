import type { AnalyticsPoint, AnalyticsSum } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { useOrganization } from '../../data/organization.tsx';
import { percent, shortNumber } from '../../lib/text-format.ts';
import { Dollars } from '../../ui/dollars.tsx';
import { Figure } from '../../ui/figure.tsx';
import { duration } from '../../ui/time.tsx';
import { number } from '../sessions/session-text.ts';
import type { OverviewRange } from './search-params.ts';

/** Four numbers of a period, compared with the one before. `against`: "the 24 hours before". */
export function Figures({
  total,
  previous,
  points,
  range,
  against,
}: {
  total: AnalyticsSum;
  previous: AnalyticsSum;
  points: readonly AnalyticsPoint[];
  range: OverviewRange;
  against: string;
}) {
  const { organizationId } = useOrganization();
  const params = { organizationId };
  const failed = total.turns.failed;
  return (
    <section className="figures" aria-labelledby="figures">
      <h2 className="visually-hidden" id="figures">
        Figures
      </h2>
      <Figure
        label={
          <Link to="/$organizationId/sessions" params={params} search={{ range }}>
            Sessions
          </Link>
        }
        value={shortNumber(total.sessions.opened)}
        about={`${number(total.turns.ended)} ${total.turns.ended === 1 ? 'turn' : 'turns'}`}
        change={{ by: ratioOf(total.sessions.opened, previous.sessions.opened), against }}
        points={whole(points.map(({ sessions }) => sessions.opened))}
      />
      <Figure
        label="First token"
        value={total.firstToken.p50Ms === null ? '–' : duration(total.firstToken.p50Ms)}
        {...(total.firstToken.p95Ms !== null && { about: `median, p95 ${duration(total.firstToken.p95Ms)}` })}
        change={{ by: ratioOf(total.firstToken.p50Ms ?? 0, previous.firstToken.p50Ms ?? 0), good: 'down', against }}
        points={points.map(({ firstToken }) => firstToken.p50Ms)}
      />
      <Figure
        label={
          <Link to="/$organizationId/sessions" params={params} search={{ range, hasError: true }}>
            Error rate
          </Link>
        }
        value={total.turns.ended === 0 ? '–' : percent(failed / total.turns.ended)}
        about={`${number(failed)} failed ${failed === 1 ? 'turn' : 'turns'}`}
        change={{ by: pointsOf(total, previous), of: 'share', good: 'down', against }}
        points={points.map((point) => (point.turns.ended === 0 ? null : shareOf(point)))}
      />
      <Figure
        label={
          <Link to="/$organizationId/usage" params={params}>
            Cost
          </Link>
        }
        value={<Dollars usd={total.costUsd} as="money" />}
        about={`${compact.format(total.tokens)} tokens`}
        change={{ by: ratioOf(total.costUsd, previous.costUsd), against }}
        points={whole(points.map(({ costUsd }) => costUsd))}
      />
    </section>
  );
}

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** Without the last point, which is not over: it would look like a fall. */
function whole(points: readonly number[]): readonly number[] {
  const before = points.slice(0, -1);
  return before.some((point) => point > 0) ? before : points;
}

function shareOf({ turns }: AnalyticsSum): number {
  return turns.ended === 0 ? 0 : turns.failed / turns.ended;
}

/** How many more turns fail, in parts of all. */
function pointsOf(now: AnalyticsSum, before: AnalyticsSum): number | undefined {
  return now.turns.ended === 0 || before.turns.ended === 0 ? undefined : shareOf(now) - shareOf(before);
}

function ratioOf(now: number, before: number): number | undefined {
  return before === 0 ? undefined : now / before - 1;
}
