// The sheet of keyboard shortcuts: what `?` opens.
import { Fragment } from 'react';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Checkbox } from '../ui/field.tsx';
import { Keys } from './keys.tsx';
import { useShortcutGroups, useShortcutsAreOn } from './registry.ts';
import './sheet.css';

export function ShortcutSheet({ onClose }: { onClose: () => void }) {
  const groups = useShortcutGroups();
  const [on, setOn] = useShortcutsAreOn();
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose} wide>
      <div className="shortcut-groups">
        {groups
          .filter(({ shortcuts }) => shortcuts.length > 0)
          .map(({ name, shortcuts }) => (
            <section key={name}>
              <h3>{name}</h3>
              <dl>
                {shortcuts.map(({ keys, does }) => (
                  <Fragment key={keys}>
                    <dt>
                      <Keys keys={keys} />
                    </dt>
                    <dd>{does}</dd>
                  </Fragment>
                ))}
              </dl>
            </section>
          ))}
      </div>
      <div className="foot apart">
        <Checkbox
          label="Enable keyboard shortcuts"
          checked={on}
          onChange={(event) => setOn(event.currentTarget.checked)}
        />
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}
