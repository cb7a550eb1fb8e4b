import { duration } from '../../../ui/time.tsx';
import type { Scale } from './scale.ts';

/** The time axis. Its numbers count from where a stretch of work begins; a break says how long nothing worked. */
export function Axis({ scale: { ticks, breaks }, labelShare }: { scale: Scale; labelShare: number }) {
  return (
    <div className="trace-line trace-axis" aria-hidden="true">
      <span className="trace-name">Call</span>
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
      <span className="trace-figures">
        <span>Tokens</span>
        <span>Cost</span>
        <span>Time</span>
      </span>
    </div>
  );
}

/** The ticks and breaks behind the rows. */
export function Grid({ scale: { ticks, breaks }, height }: { scale: Scale; height: number }) {
  return (
    <div className="trace-line trace-grid" aria-hidden="true" style={{ height }}>
      <span className="trace-name" />
      <span className="trace-track">
        {ticks.map(({ at }) => (
          <span className="trace-tick" key={at} style={{ left: percent(at) }} />
        ))}
        {breaks.map(({ at, end }) => (
          <span className="trace-gap" key={at} style={{ left: percent(at), width: percent(end - at) }} />
        ))}
      </span>
      <span className="trace-figures" />
    </div>
  );
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(3)}%`;
}
