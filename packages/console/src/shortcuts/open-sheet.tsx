import { Keyboard } from 'lucide-react';
import { Tooltip } from '../ui/tooltip.tsx';
import { open } from './opened.ts';

/** For a page that is used with the keyboard most of the time. */
export function ShortcutsButton() {
  return (
    <Tooltip text="Keyboard shortcuts (?)" side="bottom">
      <button
        type="button"
        className="button bare icon shortcuts-button"
        aria-label="Keyboard shortcuts"
        onClick={() => open('sheet')}
      >
        <Keyboard aria-hidden="true" />
      </button>
    </Tooltip>
  );
}
