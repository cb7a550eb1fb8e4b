import { MAX_LIVE_ROWS } from '../data/organization.tsx';
import { counted } from '../lib/text-format.ts';
import { Button } from './button.tsx';

/** Above a list of which so much is loaded that it is not kept current. */
export function TooLong({ reload }: { reload: () => void }) {
  return (
    <div className="row apart">
      <span className="quiet small">
        This list is no longer updated, because more than {counted(MAX_LIVE_ROWS, 'row')} are loaded.
      </span>
      <Button small onClick={reload}>
        Reload list
      </Button>
    </div>
  );
}
