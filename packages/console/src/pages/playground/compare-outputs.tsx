import { useState } from 'react';
import { Button } from '../../ui/button.tsx';
import { CodeDiff } from '../../ui/code-editor.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Select } from '../../ui/field.tsx';
import { Segmented } from '../../ui/segmented.tsx';
import { DefinitionDiff } from '../agents/diff-view.tsx';
import { type Compared, MeasuresTable } from './comparison.tsx';
import { type Column, letterOf, ranDefinition } from './state.ts';

const parts = [
  { value: 'outputs', label: 'Outputs' },
  { value: 'definitions', label: 'Definitions' },
] as const;

/** `runs`: the columns, after the turn that they repeat, if they repeat one. */
export function CompareOutputs({
  runs,
  columns,
  onClose,
}: {
  runs: readonly Compared[];
  columns: readonly Column[];
  onClose: () => void;
}) {
  const [part, setPart] = useState<(typeof parts)[number]['value']>('outputs');
  const names =
    part === 'outputs' ? runs.map(({ name }) => name) : columns.map((_, index) => `Column ${letterOf(index)}`);
  const [pair, setPair] = useState([0, 1]);
  const [from, to] = pair.map((index) => Math.min(index, names.length - 1)) as [number, number];
  const options = names.map((label, index) => ({ value: String(index), label }));
  return (
    <Dialog title="Compare" wide onClose={onClose}>
      <MeasuresTable runs={runs} />
      <div className="playground-pair">
        {columns.length > 1 && <Segmented label="What to compare" value={part} options={parts} onChange={setPart} />}
        <Select
          label="From"
          value={String(from)}
          options={options}
          onChange={({ currentTarget: { value } }) => setPair([Number(value), to])}
        />
        <Select
          label="To"
          value={String(to)}
          options={options}
          onChange={({ currentTarget: { value } }) => setPair([from, Number(value)])}
        />
      </div>
      {part === 'outputs' ? (
        <Outputs before={runs[from]!.text} after={runs[to]!.text} />
      ) : (
        <DefinitionDiff before={ranDefinition(columns[from]!)} after={ranDefinition(columns[to]!)} />
      )}
      <div className="foot">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}

function Outputs({ before, after }: { before: string; after: string }) {
  if (before === after) return <p className="quiet">The outputs are the same.</p>;
  return <CodeDiff label="Output" language="markdown" before={before} after={after} />;
}
