// A range of time for lists and charts: the last hours or days, or between two times. In the URL it is one parameter.
import { CalendarRange } from 'lucide-react';
import { type FormEvent, useState } from 'react';
import { useTimeSettings } from '../lib/time-settings.ts';
import { Button } from './button.tsx';
import { DateTimeField, textsOf } from './field.tsx';
import { instantOf, localOf } from './local-time.ts';
import { Popover } from './popover.tsx';
import { formatExact } from './time.tsx';

const HOUR_MS = 3_600_000;
const presets = {
  '1h': { label: 'Last hour', ms: HOUR_MS },
  '24h': { label: 'Last 24 hours', ms: 24 * HOUR_MS },
  '7d': { label: 'Last 7 days', ms: 7 * 24 * HOUR_MS },
  '30d': { label: 'Last 30 days', ms: 30 * 24 * HOUR_MS },
} as const;

export type Preset = keyof typeof presets;
/** A preset, or two times with a slash between, either of which may be absent. */
export type Range = Preset | `${string}/${string}`;

const isPreset = (range: string): range is Preset => Object.hasOwn(presets, range);
const isTime = (text: string) => text === '' || !Number.isNaN(Date.parse(text));

/** The range of a URL's parameter. Undefined if it is not one. */
export function readRange(text: unknown): Range | undefined {
  if (typeof text !== 'string') return undefined;
  if (isPreset(text)) return text;
  const [since, until, ...more] = text.split('/');
  if (since === undefined || until === undefined || more.length > 0 || since + until === '') return undefined;
  return isTime(since) && isTime(until) ? `${since}/${until}` : undefined;
}

/** The times of a range, in the API's format. `now` is needed for the presets. */
export function timesOf(range: Range, now: number): { since?: string; until?: string } {
  if (isPreset(range)) return { since: new Date(now - presets[range].ms).toISOString() };
  const [since, until] = range.split('/');
  return { ...(since && { since }), ...(until && { until }) };
}

/** The range in words. */
export function rangeText(range: Range): string {
  if (isPreset(range)) return presets[range].label;
  const { since, until } = timesOf(range, 0);
  if (!until) return `Since ${formatExact(since!)}`;
  return since ? `${formatExact(since)} to ${formatExact(until)}` : `Until ${formatExact(until)}`;
}

/** Chooses a range. Undefined is any time, which `onChange` receives only if `isOptional`. */
export function TimeRange({
  value,
  onChange,
  isOptional = false,
}: {
  value: Range | undefined;
  onChange: (range: Range | undefined) => void;
  isOptional?: boolean;
}) {
  // The times of the range are shown in the zone that the person chose.
  useTimeSettings();
  const [isOpen, setOpen] = useState(false);
  const choose = (range: Range | undefined) => {
    setOpen(false);
    onChange(range);
  };
  const choices: (Preset | undefined)[] = [...(isOptional ? [undefined] : []), ...(Object.keys(presets) as Preset[])];
  return (
    <Popover
      label="Time range"
      isOpen={isOpen}
      onOpenChange={setOpen}
      trigger={
        <Button aria-label={`Time range: ${value ? rangeText(value) : 'any time'}`}>
          <CalendarRange aria-hidden="true" />
          {value ? rangeText(value) : 'Any time'}
        </Button>
      }
    >
      <div className="options-list">
        {choices.map((choice) => (
          <button type="button" key={choice ?? 'any'} aria-pressed={choice === value} onClick={() => choose(choice)}>
            {choice ? presets[choice].label : 'Any time'}
          </button>
        ))}
      </div>
      <Between range={value} choose={choose} />
    </Popover>
  );
}

function Between({ range, choose }: { range: Range | undefined; choose: (range: Range) => void }) {
  const [error, setError] = useState<string>();
  const { since, until } = range && !isPreset(range) ? timesOf(range, 0) : {};
  function onSubmit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const texts = textsOf(event.currentTarget, ['since', 'until']);
    const [from = '', to = ''] = [instantOf(texts.since), instantOf(texts.until)];
    if (from + to === '') setError('Enter at least one time.');
    else if (from !== '' && to !== '' && from >= to) setError('The end is before the start.');
    else choose(`${from}/${to}`);
  }
  return (
    <form className="stack tight" onSubmit={onSubmit} noValidate>
      <DateTimeField label="From" name="since" defaultValue={localOf(since)} />
      <DateTimeField label="To" name="until" defaultValue={localOf(until)} error={error} />
      <Button type="submit" small>
        Apply
      </Button>
    </form>
  );
}
