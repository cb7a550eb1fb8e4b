import { Search } from 'lucide-react';
import { Keys } from '../shortcuts/keys.tsx';
import { open } from '../shortcuts/opened.ts';

/** Opens the command palette. */
export function SearchButton() {
  return (
    <button type="button" className="button search-button" onClick={() => open('palette')}>
      <Search aria-hidden="true" />
      <span className="name">
        Search <span className="visually-hidden">and commands</span>
      </span>
      <span aria-hidden="true">
        <Keys keys="mod+k" />
      </span>
    </button>
  );
}
