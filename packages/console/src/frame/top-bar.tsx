import { BookOpen } from 'lucide-react';
import { Crumbs, useOpenPage } from '../data/crumbs.tsx';
import { Tooltip } from '../ui/tooltip.tsx';
import { EnvironmentSwitch } from './environment.tsx';
import { SearchButton } from './search-button.tsx';

/** What every page has above it. */
export function TopBar() {
  const operation = useOpenPage()?.operation;
  return (
    <header className="top-bar">
      <Crumbs />
      <EnvironmentSwitch />
      <SearchButton />
      <Tooltip text="API reference" side="bottom">
        <a
          className="button bare icon reference-link"
          href={operation ? `/docs#${operation}` : '/docs'}
          target="_blank"
          rel="noopener"
          aria-label="API reference"
        >
          <BookOpen aria-hidden="true" />
        </a>
      </Tooltip>
    </header>
  );
}
