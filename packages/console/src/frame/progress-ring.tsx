import { useProgress } from '../data/getting-started.ts';

const RADIUS = 6;
const LENGTH = 2 * Math.PI * RADIUS;

/** How much of "Getting started" is done. */
export function ProgressRing() {
  const { done, of } = useProgress();
  return (
    <svg
      className="ring"
      viewBox="0 0 16 16"
      role="img"
      aria-hidden={done === undefined}
      aria-label={`${done ?? 0} of ${of} steps done:`}
    >
      <circle cx="8" cy="8" r={RADIUS} />
      <circle cx="8" cy="8" r={RADIUS} strokeDasharray={`${((done ?? 0) / of) * LENGTH} ${LENGTH}`} />
    </svg>
  );
}
