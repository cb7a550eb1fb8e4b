import { ArrowDownRight, ArrowRight, ArrowUpRight } from 'lucide-react';
import type { ReactNode } from 'react';

export interface Change {
  /**
   * Against the period before: 0.12 is 12% more, or 12 points more if `of` is a share. Undefined, and not shown, if there was nothing
   * before.
   */
  by: number | undefined;
  of?: 'amount' | 'share';
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
  value: ReactNode;
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
const LEAST_POINTS = 0.0005;
const MOST_RATIO = 9.99;

function ChangeText({ by, of = 'amount', good, against }: Change) {
  if (by === undefined) return null;
  const isSame = Math.abs(by) < (of === 'share' ? LEAST_POINTS : LEAST_RATIO);
  const direction = by > 0 ? 'up' : 'down';
  const tone = isSame || good === undefined ? 'same' : good === direction ? 'better' : 'worse';
  const Arrow = isSame ? ArrowRight : by > 0 ? ArrowUpRight : ArrowDownRight;
  return (
    <p className={`change small ${tone}`} title={`Compared with ${against}`}>
      <Arrow aria-hidden="true" />
      {isSame ? 'same' : of === 'share' ? pointsText(by) : percentText(by)}
      <span className="visually-hidden">
        {isSame ? ' as in ' : direction === 'up' ? ' more than in ' : ' less than in '}
        {against}
      </span>
    </p>
  );
}

function percentText(ratio: number): string {
  return `${ratio > MOST_RATIO ? '>' : ''}${Math.round(Math.min(Math.abs(ratio), MOST_RATIO) * 100)}%`;
}

/** From 2% to 3% is one point, and not 50%. */
export function pointsText(difference: number): string {
  const points = Number((Math.abs(difference) * 100).toFixed(1));
  return points === 1 ? '1 point' : `${points} points`;
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
