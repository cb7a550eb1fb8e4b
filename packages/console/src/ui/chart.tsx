// Charts over time: stacked bars, and lines. The pointer or the arrow keys choose a point, whose values are shown; the same numbers are
// a table, also for screen readers.
//
// They are SVG, so the style sheet colors them, in both schemes, and the content security policy needs no exception. uPlot draws more
// points faster, but on a canvas, without text for a screen reader, and no chart here has more than a few hundred points.
import { type KeyboardEvent, type PointerEvent, type ReactNode, useState } from 'react';
import { PlainText } from './text.tsx';
import './chart.css';

export interface Point {
  /** Its time. */
  label: string;
  /** One for each series. None is negative; null: there is none. */
  values: readonly (number | null)[];
}

interface ChartProps {
  title: ReactNode;
  /** The title for screen readers, if it is not text. */
  name?: string;
  /** The total, in words. */
  total?: ReactNode;
  /** At most six have a color of their own; the last is for all others. */
  series: readonly string[];
  points: readonly Point[];
  format: (value: number) => string;
  /** `format` for the ends and the middle of the axis, which are round numbers. */
  axis?: (value: number) => string;
  /** What the points are: "Day". */
  unit?: string;
}

/** Stacked bars. */
export function BarChart({ bars, ...props }: Omit<ChartProps, 'points'> & { bars: readonly Point[] }) {
  const sums = bars.map(({ values }) => values.reduce<number>((sum, one) => sum + (one ?? 0), 0));
  const top = roundAbove(Math.max(0, ...sums));
  return (
    <Chart {...props} points={bars} top={top}>
      {bars.map((bar, at) => (
        <Stack key={bar.label} at={at} values={bar.values} top={top} />
      ))}
    </Chart>
  );
}

/** Durations in milliseconds, a line for each series. It has gaps where there is no value; a value between two gaps is a dot. */
export function LineChart(props: ChartProps) {
  const { series, points } = props;
  const top = roundDurationAbove(Math.max(0, ...points.flatMap(({ values }) => values.map((value) => value ?? 0))));
  return (
    <Chart {...props} top={top}>
      {series.map((name, index) => (
        <g className={seriesClass(index)} key={name}>
          {runsOf(points.map(({ values }) => values[index] ?? null)).map((run) => (
            <polyline key={run[0]!.at} className={run.length === 1 ? 'dot' : undefined} points={lineOf(run, top)} />
          ))}
        </g>
      ))}
    </Chart>
  );
}

function Chart({
  title,
  name = typeof title === 'string' ? title : '',
  total,
  series,
  points,
  format,
  axis = format,
  unit = 'Day',
  top,
  children,
}: ChartProps & { top: number; children: ReactNode }) {
  return (
    <figure className="chart" aria-label={name}>
      <figcaption>
        <h2>{title}</h2>
        {total && <span className="quiet small">{total}</span>}
        {series.length > 1 && (
          <div className={series.length > 3 ? 'key line' : 'key'} aria-hidden="true">
            {series.map((one, index) => (
              <span key={one}>
                <Swatch index={index} />
                <span className="name" title={one}>
                  <PlainText text={one} />
                </span>
              </span>
            ))}
          </div>
        )}
      </figcaption>
      <div className="plot">
        <div className="axis-y" aria-hidden="true">
          {[top, top / 2, 0].map((value) => (
            <span key={value}>{axis(value)}</span>
          ))}
        </div>
        <Canvas name={name} series={series} points={points} format={format}>
          {children}
        </Canvas>
        <div className="axis-x" aria-hidden="true">
          {ends(points).map(({ label }) => (
            <span key={label}>{label}</span>
          ))}
        </div>
      </div>
      <details>
        <summary>Show as table</summary>
        <div className="data-frame">
          <table className="data">
            <caption className="visually-hidden">{name}</caption>
            <thead>
              <tr>
                <th scope="col">{unit}</th>
                {series.map((one) => (
                  <th scope="col" className="end" key={one}>
                    <PlainText text={one} />
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {points.map(({ label, values }) => (
                <tr key={label}>
                  <td data-label={unit}>{label}</td>
                  {series.map((one, index) => (
                    <td className="end number" data-label={one} key={one}>
                      {textOf(values[index], format)}
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

/** The drawing, and the values of the point that the pointer or the keyboard has chosen. */
function Canvas({
  name,
  series,
  points,
  format,
  children,
}: Pick<ChartProps, 'series' | 'points' | 'format'> & { name: string; children: ReactNode }) {
  const [chosen, setChosen] = useState<number>();
  const last = points.length - 1;
  const at = chosen === undefined ? undefined : Math.min(chosen, last);
  const point = at === undefined ? undefined : points[at];
  function onPointerMove({ currentTarget, clientX }: PointerEvent) {
    const { left, width } = currentTarget.getBoundingClientRect();
    if (width > 0) setChosen(Math.max(0, Math.min(last, Math.floor(((clientX - left) / width) * points.length))));
  }
  function onKeyDown(event: KeyboardEvent) {
    const next = { ArrowLeft: (at ?? last + 1) - 1, ArrowRight: (at ?? -1) + 1, Home: 0, End: last }[event.key];
    if (event.key === 'Escape') setChosen(undefined);
    if (next === undefined) return;
    event.preventDefault();
    setChosen(Math.max(0, Math.min(last, next)));
  }
  const words = (one: Point) =>
    `${one.label}: ${series.map((of, index) => `${of} ${textOf(one.values[index], format)}`).join(', ')}`;
  return (
    <div
      className="canvas"
      role="slider"
      tabIndex={0}
      aria-label={`${name}, by point`}
      aria-valuemin={0}
      aria-valuemax={Math.max(0, last)}
      aria-valuenow={at ?? Math.max(0, last)}
      aria-valuetext={point ? words(point) : 'Use the arrow keys to read the points'}
      onPointerMove={onPointerMove}
      onPointerLeave={() => setChosen(undefined)}
      onBlur={() => setChosen(undefined)}
      onKeyDown={onKeyDown}
    >
      <svg viewBox={`0 0 ${Math.max(1, points.length)} 100`} preserveAspectRatio="none" aria-hidden="true">
        {at !== undefined && <rect className="cursor" x={at} width="1" y="0" height="100" />}
        {[0, 50, 100].map((y) => (
          <line className="grid" key={y} x1="0" x2={Math.max(1, points.length)} y1={y} y2={y} />
        ))}
        {children}
      </svg>
      {point && (
        <div className={`chart-tooltip ${at! < points.length / 2 ? 'right' : 'left'}`} aria-hidden="true">
          <strong>{point.label}</strong>
          {series.map((one, index) => (
            <span className="tooltip-row" key={one}>
              <Swatch index={index} />
              <span className="name">
                <PlainText text={one} />
              </span>
              <span className="number">{textOf(point.values[index], format)}</span>
            </span>
          ))}
        </div>
      )}
    </div>
  );
}

function textOf(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? '–' : format(value);
}

function Swatch({ index }: { index: number }) {
  return (
    <svg className={`mark ${seriesClass(index)}`} viewBox="0 0 1 1" aria-hidden="true">
      <rect width="1" height="1" />
    </svg>
  );
}

const COLORS = 6;

function seriesClass(index: number): string {
  return `series-${Math.min(index + 1, COLORS)}`;
}

// As a share of a point's width.
const BAR_WIDTH = 0.72;
// A small value must not look like zero.
const LEAST_HEIGHT = 1;

function Stack({ at, values, top }: { at: number; values: readonly (number | null)[]; top: number }) {
  let y = 100;
  const parts = values.map((value, index) => {
    const height = value ? Math.max(LEAST_HEIGHT, (value / top) * 100) : 0;
    y -= height;
    return { series: seriesClass(index), index, y, height };
  });
  return (
    <g>
      {parts.map((part) => (
        <g className={part.series} key={part.index}>
          <rect x={at + (1 - BAR_WIDTH) / 2} width={BAR_WIDTH} y={part.y} height={part.height} />
        </g>
      ))}
    </g>
  );
}

interface Value {
  at: number;
  value: number;
}

/** The values without those between that are not there. */
function runsOf(values: readonly (number | null)[]): Value[][] {
  const runs: Value[][] = [];
  for (const [at, value] of values.entries()) {
    if (value === null) continue;
    if (at > 0 && values[at - 1] !== null) runs.at(-1)!.push({ at, value });
    else runs.push([{ at, value }]);
  }
  return runs;
}

function lineOf(run: readonly Value[], top: number): string {
  const point = (x: number, value: number) => `${x},${100 - (value / top) * 100}`;
  const [only, ...more] = run;
  // A line without length is a dot, because its ends are round.
  if (more.length === 0) return `${point(only!.at + 0.5, only!.value)} ${point(only!.at + 0.5, only!.value)}`;
  return run.map(({ at, value }) => point(at + 0.5, value)).join(' ');
}

const ROUND = [1, 1.5, 2, 3, 4, 5, 6, 8, 10];

/** The smallest of 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 15 … that is not below the value. 1 for zero. */
export function roundAbove(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ROUND.map((step) => step * power).find((step) => step >= value) ?? 10 * power;
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
// Steps with a round half: durations below 20 ms are shown without digits after the point.
const ROUND_MS = [2, 4, 6, 8, 10, 20];
const ROUND_DURATIONS = [1, 2, 4, 6, 10, 20, 30, 60, 120, 240, 360, 720].map((minutes) => minutes * MINUTE);

/** The next round duration from `ms` on, which is shown in minutes or hours. */
export function roundDurationAbove(ms: number): number {
  if (ms <= MINUTE) return ROUND_MS.find((step) => step >= ms) ?? roundAbove(ms);
  return ROUND_DURATIONS.find((step) => step >= ms) ?? Math.ceil(ms / (24 * HOUR)) * 24 * HOUR;
}

/** The first, the middle and the last. */
function ends<T>(all: readonly T[]): T[] {
  if (all.length < 3) return [...all];
  return [all[0]!, all[Math.floor(all.length / 2)]!, all.at(-1)!];
}
