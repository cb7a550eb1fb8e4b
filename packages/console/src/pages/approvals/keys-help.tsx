import { Checkbox } from '../../ui/field.tsx';

const keys: readonly (readonly [string, string])[] = [
  ['J', 'next approval'],
  ['K', 'previous approval'],
  ['A', 'approve, then Enter to confirm'],
  ['D', 'deny, type a reason, then Enter'],
  ['E', 'edit the input, Enter when done, Enter again to approve'],
  ['Esc', 'go back without deciding'],
];

/** The keyboard shortcuts of the page, and a switch for them. */
export function KeysHelp({ on, setOn }: { on: boolean; setOn: (on: boolean) => void }) {
  return (
    <details className="keys-help">
      <summary>Keyboard shortcuts</summary>
      <div className="stack tight">
        <ul>
          {keys.map(([key, what]) => (
            <li key={key}>
              <kbd>{key}</kbd>
              <span>{what}</span>
            </li>
          ))}
        </ul>
        <Checkbox
          label="Enable keyboard shortcuts"
          checked={on}
          onChange={(event) => setOn(event.currentTarget.checked)}
        />
      </div>
    </details>
  );
}
