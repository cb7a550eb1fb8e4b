import { duration } from '../../../ui/time.tsx';
import type { Scale } from './scale.ts';

/** The time axis. Its numbers count from where a stretch of work begins; a break says how long nothing worked. */
export function Axis({ scale: { ticks, breaks }, labelShare }: { scale: Scale; labelShare: number }) {
  return (
    <div className="trace-line trace-axis" aria-hidden="true">
      <span />
      <span className="trace-track">
        {ticks.map(({ at, ms }) => (
          <span className="trace-tick number" key={at} style={{ left: percent(at) }}>
            {ms === 0 ? '0 s' : duration(ms)}
          </span>
        ))}
        {breaks.map(({ at, end, ms }) => (
          <span
            className="trace-break number"
            key={at}
            style={{ left: percent(at), width: percent(end - at) }}
            title={`Nothing worked for ${duration(ms)}`}
          >
            {end - at >= labelShare / 2 && duration(ms)}
          </span>
        ))}
      </span>
      <span />
    </div>
  );
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(3)}%`;
}
