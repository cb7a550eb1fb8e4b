import { percent } from '../lib/text-format.ts';

// From here on, the limit is near.
const NEAR = 0.8;

/** How much of a limit is used: a bar, and the share in words. */
export function Meter({
  share,
  word = percent(share),
  isPart = false,
}: {
  share: number;
  /** Replaces the share. */
  word?: string;
  /** A part of a whole, which is not a limit. */
  isPart?: boolean;
}) {
  const tone = isPart ? 'part' : share >= 1 ? 'bad' : share >= NEAR ? 'warn' : 'good';
  return (
    <span className={`meter ${tone}`}>
      <svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
        <rect className="whole" width="100" height="1" />
        <rect width={Math.min(1, share) * 100} height="1" />
      </svg>
      <span className="number">{word}</span>
    </span>
  );
}
