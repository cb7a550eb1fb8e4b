import { ArrowDownRight, ArrowRight, ArrowUpRight } from 'lucide-react';
import type { ReactNode } from 'react';

export interface Change {
  /** Against the period before: 0.12 is 12% more. Undefined, and not shown, if there was nothing before. */
  ratio: number | undefined;
  /** Which direction is good, if one is. */
  good?: 'up' | 'down';
  /** What it is compared with: "the 7 days before". */
  against: string;
}

/** A number that answers a question, with its change and its course. Several are in an element of class `figures`. */
export function Figure({
  label,
  value,
  about,
  change,
  points,
}: {
  /** May be a link to the details. */
  label: ReactNode;
  value: string;
  /** In small type after the value: "p95 4.1 s". */
  about?: ReactNode;
  change?: Change;
  /** From old to new, null where there is nothing to measure. Not shown if all are 0. */
  points?: readonly (number | null)[];
}) {
  return (
    <div className="figure-card">
      <div className="row apart">
        <h3>{label}</h3>
        {change && <ChangeText {...change} />}
      </div>
      <div className="value">
        <strong>{value}</strong>
        {about && <span className="quiet small">{about}</span>}
      </div>
      {isCourse(points) && <Sparkline points={points} />}
    </div>
  );
}

// Smaller changes are noise.
const LEAST_RATIO = 0.005;
const MOST_RATIO = 9.99;

function ChangeText({ ratio, good, against }: Change) {
  if (ratio === undefined) return null;
  const isSame = Math.abs(ratio) < LEAST_RATIO;
  const direction = ratio > 0 ? 'up' : 'down';
  const tone = isSame || good === undefined ? 'same' : good === direction ? 'better' : 'worse';
  const Arrow = isSame ? ArrowRight : ratio > 0 ? ArrowUpRight : ArrowDownRight;
  const percent = `${ratio > MOST_RATIO ? '>' : ''}${Math.round(Math.min(Math.abs(ratio), MOST_RATIO) * 100)}%`;
  return (
    <p className={`change small ${tone}`} title={`Compared with ${against}`}>
      <Arrow aria-hidden="true" />
      {isSame ? 'same' : percent}
      <span className="visually-hidden">
        {isSame ? ' as in ' : direction === 'up' ? ' more than in ' : ' less than in '}
        {against}
      </span>
    </p>
  );
}

const WIDTH = 100;
const HEIGHT = 28;

function isCourse(points: readonly (number | null)[] | undefined): points is readonly (number | null)[] {
  const known = points?.filter((point) => point !== null) ?? [];
  return known.length > 1 && known.some((point) => point !== 0);
}

/** A line without axes, which shows only the course. Times without a point are skipped. */
function Sparkline({ points }: { points: readonly (number | null)[] }) {
  const known = points.filter((point) => point !== null);
  const bottom = Math.min(0, ...known);
  const span = Math.max(...known) - bottom || 1;
  const at = points.flatMap((point, index) => {
    if (point === null) return [];
    const x = (index / (points.length - 1)) * WIDTH;
    return { x: x.toFixed(1), y: (HEIGHT - 1 - ((point - bottom) / span) * (HEIGHT - 2)).toFixed(1) };
  });
  const line = at.map(({ x, y }) => `${x},${y}`).join(' ');
  return (
    <svg className="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <polygon points={`${at[0]!.x},${HEIGHT} ${line} ${at.at(-1)!.x},${HEIGHT}`} />
      <polyline points={line} />
    </svg>
  );
}
