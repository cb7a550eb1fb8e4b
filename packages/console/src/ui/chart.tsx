// A bar chart by day, with the same numbers as a table, also for screen readers.

interface Bar {
  label: string;
  /** One for each series, stacked. None is negative. */
  values: readonly number[];
}

/** At most two series, because more colours are hard to distinguish for some people. */
export function BarChart({
  title,
  total,
  series,
  bars,
  format,
}: {
  title: string;
  /** The total, in words. */
  total?: string;
  series: readonly string[];
  bars: readonly Bar[];
  format: (value: number) => string;
}) {
  const sums = bars.map(({ values }) => values.reduce((sum, one) => sum + one, 0));
  const top = roundAbove(Math.max(0, ...sums));
  return (
    <figure className="chart">
      <figcaption>
        <h2>{title}</h2>
        {total && <span className="quiet">{total}</span>}
      </figcaption>
      {series.length > 1 && (
        <div className="key" aria-hidden="true">
          {series.map((name, index) => (
            <span key={name}>
              <svg viewBox="0 0 1 1" aria-hidden="true">
                <rect className={`series-${index + 1}`} width="1" height="1" />
              </svg>{' '}
              {name}
            </span>
          ))}
        </div>
      )}
      <div className="plot" aria-hidden="true">
        <div className="axis-y">
          {[top, top / 2, 0].map((value) => (
            <span key={value}>{format(value)}</span>
          ))}
        </div>
        <svg viewBox={`0 0 ${bars.length} 100`} preserveAspectRatio="none" aria-hidden="true">
          {[0, 50, 100].map((y) => (
            <line key={y} x1="0" x2={bars.length} y1={y} y2={y} />
          ))}
          {bars.map((bar, index) => (
            <Stack key={bar.label} at={index} bar={bar} top={top} series={series} format={format} />
          ))}
        </svg>
        <div className="axis-x">
          {ends(bars).map(({ label }) => (
            <span key={label}>{label}</span>
          ))}
        </div>
      </div>
      <details>
        <summary>Show as table</summary>
        <div className="data-frame">
          <table className="data">
            <caption className="visually-hidden">{title}</caption>
            <thead>
              <tr>
                <th scope="col">Day</th>
                {series.map((name) => (
                  <th scope="col" className="end" key={name}>
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {bars.map(({ label, values }) => (
                <tr key={label}>
                  <td data-label="Day">{label}</td>
                  {series.map((name, index) => (
                    <td className="end number" data-label={name} key={name}>
                      {format(values[index] ?? 0)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}

// As a share of a day's width.
const BAR_WIDTH = 0.72;
// A small value must not look like zero.
const LEAST_HEIGHT = 1;

function Stack({
  at,
  bar,
  top,
  series,
  format,
}: {
  at: number;
  bar: Bar;
  top: number;
  series: readonly string[];
  format: (value: number) => string;
}) {
  let y = 100;
  const parts = bar.values.map((value) => {
    const height = value === 0 ? 0 : Math.max(LEAST_HEIGHT, (value / top) * 100);
    y -= height;
    return { y, height };
  });
  const words = series.map((name, index) => `${name}: ${format(bar.values[index] ?? 0)}`).join(', ');
  return (
    <g>
      <title>{`${bar.label}. ${words}`}</title>
      {/* The tooltip covers the whole column, not only the bar. */}
      <rect x={at} width="1" y="0" height="100" fill="transparent" />
      {parts.map((part, index) => (
        <rect
          key={series[index]}
          className={`series-${index + 1}`}
          x={at + (1 - BAR_WIDTH) / 2}
          width={BAR_WIDTH}
          y={part.y}
          height={part.height}
        />
      ))}
    </g>
  );
}

/** The smallest of 1, 2, 5, 10, 20 … that is not below the value. 1 for zero. */
export function roundAbove(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value) ?? 10 * power;
}

/** The first, the middle and the last. */
function ends<T>(all: readonly T[]): T[] {
  if (all.length < 3) return [...all];
  return [all[0]!, all[Math.floor(all.length / 2)]!, all.at(-1)!];
}
