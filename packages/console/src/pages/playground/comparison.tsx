// What the runs took and cost, a line each, compared with the first of them.
import { Dollars } from '../../ui/dollars.tsx';
import { type Measures, shownMeasures } from './measures.ts';

export interface Baseline {
  readonly name: string;
  readonly measures: Measures | undefined;
}

export interface Compared extends Baseline {
  /** What users read of it. */
  readonly text: string;
}

export function MeasuresTable({ runs }: { runs: readonly Compared[] }) {
  const baseline = runs[0]?.measures;
  return (
    <div className="playground-table">
      <table>
        <thead>
          <tr>
            <th scope="col">Run</th>
            {shownMeasures(undefined).map(({ name }) => (
              <th scope="col" key={name}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {runs.map(({ name, measures }, index) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              {shownMeasures(measures, index === 0 ? undefined : baseline).map((one) => (
                <td className="number" key={one.name}>
                  {one.costUsd == null ? one.text : <Dollars usd={one.costUsd} as="short" />}
                  {one.change && <span className="quiet small"> {one.change}</span>}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
