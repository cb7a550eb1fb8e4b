import type { ReactNode } from 'react';
import { Button } from './button.tsx';
import { Code } from './copy.tsx';
import { Dialog } from './dialog.tsx';
import { Notice } from './notice.tsx';

/** A secret that the service returns once. It is only in this dialog: once closed, the page no longer contains it.
 * `secret` is absent if an idempotent request was repeated by a caller who may not see it again.
 */
export function OneTimeSecret({
  title,
  secret,
  onClose,
  children,
}: {
  title: string;
  secret: string | undefined;
  onClose: () => void;
  /** What to do with it. */
  children?: ReactNode;
}) {
  return (
    <Dialog title={title} onClose={onClose} wide lasting>
      {secret === undefined ? (
        <Notice
          kind="warn"
          title="The secret was already shown and can’t be shown again. Create a new one or rotate it."
        />
      ) : (
        <>
          <Notice kind="warn" title="Copy the secret now. It won’t be shown again.">
            <p>No one can read it later, not even the operator. If you lose it, create a new one.</p>
          </Notice>
          <Code text={secret} label="Copy secret" />
          {children}
        </>
      )}
      <div className="foot">
        <Button look="primary" onClick={onClose}>
          {secret === undefined ? 'Close' : 'I’ve saved it'}
        </Button>
      </div>
    </Dialog>
  );
}
