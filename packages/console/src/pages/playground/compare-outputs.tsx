import { useState } from 'react';
import { Button } from '../../ui/button.tsx';
import { CodeDiff } from '../../ui/code-editor.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Select } from '../../ui/field.tsx';
import { letterOf } from './state.ts';

/** The outputs of two columns, with what differs. */
export function CompareOutputs({ texts, onClose }: { texts: readonly string[]; onClose: () => void }) {
  const [[from, to], setPair] = useState([0, 1]);
  const options = texts.map((_, index) => ({ value: String(index), label: `Column ${letterOf(index)}` }));
  const [before, after] = [texts[from!]!, texts[to!]!];
  return (
    <Dialog title="Compare outputs" wide onClose={onClose}>
      <div className="playground-model">
        <Select
          label="From"
          value={String(from)}
          options={options}
          onChange={({ currentTarget: { value } }) => setPair([Number(value), to!])}
        />
        <Select
          label="To"
          value={String(to)}
          options={options}
          onChange={({ currentTarget: { value } }) => setPair([from!, Number(value)])}
        />
      </div>
      {before === after ? (
        <p className="quiet">The outputs are the same.</p>
      ) : (
        <CodeDiff label="Output" language="markdown" before={before} after={after} />
      )}
      <div className="foot">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}
