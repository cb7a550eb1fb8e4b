import { Button } from '../../ui/button.tsx';
import { Code } from '../../ui/copy.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Notice } from '../../ui/notice.tsx';
import type { CreatedLink } from './people.tsx';

/** A one-time link, shown once, for the user to send. */
export function OneTimeLink({ title, link, about, onClose }: CreatedLink & { onClose: () => void }) {
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
