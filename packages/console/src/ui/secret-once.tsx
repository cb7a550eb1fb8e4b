import type { ReactNode } from 'react';
import { Button } from './button.tsx';
import { Code } from './copy.tsx';
import { Dialog } from './dialog.tsx';
import { Notice } from './notice.tsx';

/**
 * A secret that the service shows this once. It stands in this dialog alone: closed, it is nowhere in the page any more.
 * `secret` is absent where an answer was repeated to somebody who may not see it again.
 */
export function SecretOnce({
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
        <Notice kind="warn" title="The secret was shown already, and cannot be shown again. Make or rotate it anew." />
      ) : (
        <>
          <Notice kind="warn" title="Copy it now: it is shown this once.">
            <p>Nobody can read it again, not even the operator. If it is lost, make a new one.</p>
          </Notice>
          <Code text={secret} label="Copy the secret" />
          {children}
        </>
      )}
      <div className="foot">
        <Button look="primary" onClick={onClose}>
          {secret === undefined ? 'Close' : 'I have kept it'}
        </Button>
      </div>
    </Dialog>
  );
}
