import type { AnalyticsPoint, AnalyticsSum } from '@signalbox/client';
import { money, percent } from '../../text-format.ts';
import { Figure } from '../../ui/figure.tsx';
import { duration } from '../../ui/time.tsx';
import { number } from '../sessions/session-text.ts';

/** Four numbers of a period, compared with the one before. `against`: "the 24 hours before". */
export function Figures({
  total,
  previous,
  points,
  against,
}: {
  total: AnalyticsSum;
  previous: AnalyticsSum;
  points: readonly AnalyticsPoint[];
  against: string;
}) {
  const failed = total.turns.failed;
  return (
    <section className="figures" aria-labelledby="figures">
      <h2 className="visually-hidden" id="figures">
        Figures
      </h2>
      <Figure
        label="Sessions"
        value={number(total.sessions.opened)}
        about={`${number(total.turns.ended)} ${total.turns.ended === 1 ? 'turn' : 'turns'}`}
        change={{ ratio: ratioOf(total.sessions.opened, previous.sessions.opened), against }}
        points={points.map(({ sessions }) => sessions.opened)}
      />
      <Figure
        label="First token, median"
        value={total.firstToken.p50Ms === null ? '–' : duration(total.firstToken.p50Ms)}
        {...(total.firstToken.p95Ms !== null && { about: `p95 ${duration(total.firstToken.p95Ms)}` })}
        change={{ ratio: ratioOf(total.firstToken.p50Ms ?? 0, previous.firstToken.p50Ms ?? 0), good: 'down', against }}
        points={points.map(({ firstToken }) => firstToken.p50Ms ?? 0)}
      />
      <Figure
        label="Error rate"
        value={total.turns.ended === 0 ? '–' : percent(failed / total.turns.ended)}
        about={`${number(failed)} failed ${failed === 1 ? 'turn' : 'turns'}`}
        change={{ ratio: ratioOf(shareOf(total), shareOf(previous)), good: 'down', against }}
        points={points.map(shareOf)}
      />
      <Figure
        label="Cost"
        value={money(total.costUsd)}
        about={`${compact.format(total.tokens)} tokens`}
        change={{ ratio: ratioOf(total.costUsd, previous.costUsd), against }}
        points={points.map(({ costUsd }) => costUsd)}
      />
    </section>
  );
}

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

function shareOf({ turns }: AnalyticsSum): number {
  return turns.ended === 0 ? 0 : turns.failed / turns.ended;
}

function ratioOf(now: number, before: number): number | undefined {
  if (before === 0) return now === 0 ? 0 : undefined;
  return now / before - 1;
}
