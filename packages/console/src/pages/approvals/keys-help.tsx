import { Checkbox } from '../../ui/field.tsx';

const keys: readonly (readonly [string, string])[] = [
  ['J', 'the next approval'],
  ['K', 'the one before'],
  ['A', 'approve it; then Enter'],
  ['D', 'deny it; type the reason, then Enter'],
  ['E', 'edit its input; Enter when it is done, and Enter again to approve'],
  ['Esc', 'back, nothing is decided'],
];

/** The keys of the page, and a switch for them. */
export function KeysHelp({ on, setOn }: { on: boolean; setOn: (on: boolean) => void }) {
  return (
    <details className="keys-help">
      <summary>Keys</summary>
      <div className="stack tight">
        <ul>
          {keys.map(([key, what]) => (
            <li key={key}>
              <kbd>{key}</kbd>
              <span>{what}</span>
            </li>
          ))}
        </ul>
        <Checkbox label="Use these keys" checked={on} onChange={(event) => setOn(event.currentTarget.checked)} />
      </div>
    </details>
  );
}
