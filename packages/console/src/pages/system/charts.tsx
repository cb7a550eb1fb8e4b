import { providerFacts } from '@signalbox/contract';
import type { ReactNode } from 'react';
import { counted } from '../../lib/text-format.ts';
import { BarChart, LineChart, type Point } from '../../ui/chart.tsx';
import { Meter } from '../../ui/meter.tsx';
import { duration } from '../../ui/time.tsx';
import { Specimen } from './system.tsx';

const days = ['17 Nov', '18 Nov', '19 Nov', '20 Nov', '21 Nov', '22 Nov', '23 Nov'];
const points = (values: (at: number) => readonly (number | null)[]): Point[] =>
  days.map((label, at) => ({ label, values: values(at) }));
const models = [
  `openai/${providerFacts.openai.own.exampleModel}`,
  `anthropic/${providerFacts.anthropic.own.exampleModel}`,
  'openai-compatible/a-model-with-a-name-that-is-longer-than-its-place',
  `google/${providerFacts.google.own.exampleModel}`,
  'mistral/mistral-large',
  'All others',
];
const dollars = (value: number) => `$${value}`;

export function Charts() {
  return (
    <>
      <Specimen name="Bars">
        <div className="columns">
          <Card>
            <BarChart
              title="Six series"
              total="$1,184.20 in 7 days"
              series={models}
              bars={points((at) => models.map((_, index) => 40 - index * 6 + ((at * 7 + index * 3) % 11)))}
              format={dollars}
              axis={dollars}
            />
          </Card>
          <Card>
            <BarChart
              title="A single bar, and one too low to be seen"
              series={['Accepted', 'Failed']}
              bars={points((at) => [at === 6 ? 4_812 : 0, at === 2 ? 3 : 0])}
              format={(value) => counted(value, 'request')}
              axis={(value) => value.toLocaleString('en')}
            />
          </Card>
        </div>
      </Specimen>
      <Specimen name="Lines">
        <div className="columns">
          <Card>
            <LineChart
              title="Turn duration"
              series={['Median', '95th percentile']}
              points={points((at) => [2_400 + at * 90, 9_000 + ((at * 5) % 7) * 900])}
              format={duration}
            />
          </Card>
          <Card>
            <LineChart
              title="With gaps, a value alone, and nothing of the second"
              series={['Median', '95th percentile']}
              points={points((at) => [at === 1 || at > 3 ? 800 + at * 40 : null, null])}
              format={duration}
            />
          </Card>
        </div>
      </Specimen>
      <Specimen name="Meters">
        <div className="columns">
          {[0, 0.0004, 0.42, 0.8].map((share) => (
            <Meter key={share} share={share} />
          ))}
          <Meter share={1.3} />
          <Meter share={1} word="stopped" />
          <Meter share={0.9} isPart />
        </div>
      </Specimen>
    </>
  );
}

function Card({ children }: { children: ReactNode }) {
  return <section className="card">{children}</section>;
}
