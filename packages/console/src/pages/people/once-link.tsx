import { Button } from '../../ui/button.tsx';
import { Code } from '../../ui/copy.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Notice } from '../../ui/notice.tsx';
import type { MadeLink } from './people.tsx';

/** A one-time link, shown this once, to be handed over by other means. */
export function OnceLink({ title, link, about, onClose }: MadeLink & { onClose: () => void }) {
  return (
    <Dialog title={title} onClose={onClose} wide lasting>
      {link === undefined ? (
        <Notice kind="warn" title="This link was already shown. Create a new one." />
      ) : (
        <>
          <p>Send it yourself, over a channel that you trust. Anyone who has it can use it. {about}</p>
          <Code text={link} label="Copy link" />
        </>
      )}
      <div className="foot">
        <Button look="primary" onClick={onClose}>
          Done
        </Button>
      </div>
    </Dialog>
  );
}
