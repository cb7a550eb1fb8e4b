// The browser's own modal dialog: it keeps the focus inside, closes with Escape and gives the focus back.
import { type FormEvent, type ReactNode, useId, useLayoutEffect, useRef, useState } from 'react';
import { Button } from './button.tsx';
import { ErrorNotice } from './notice.tsx';

export function Dialog({
  title,
  onClose,
  wide,
  lasting,
  children,
}: {
  title: string;
  onClose: () => void;
  wide?: boolean;
  /** Not closed by Escape: what it shows is shown once. */
  lasting?: boolean;
  children: ReactNode;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Closed while it is still in the page: only then does the browser give the focus back.
  useLayoutEffect(() => {
    const element = dialog.current!;
    element.showModal();
    return () => element.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      className={wide ? 'dialog wide' : 'dialog'}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        if (!lasting) onClose();
      }}
    >
      <div className="body">
        <h2 id={id}>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

/** A form in a dialog: it stays open with the error where `submit` fails, and is closed where it succeeds. */
export function FormDialog({
  title,
  action,
  danger,
  wide,
  beside,
  submit,
  onClose,
  children,
}: {
  title: string;
  /** What the button says: the verb. */
  action: string;
  danger?: boolean;
  wide?: boolean;
  /** Fields that say themselves what is wrong with them (`ErrorNotice`). */
  beside?: readonly string[];
  submit: () => Promise<unknown>;
  onClose: () => void;
  children: ReactNode;
}) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  async function onSubmit(event: FormEvent) {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setError(undefined);
    try {
      await submit();
      onClose();
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  }
  return (
    <Dialog title={title} onClose={onClose} {...(wide && { wide })}>
      <form className="stack" onSubmit={onSubmit} noValidate>
        {children}
        {error !== undefined && <ErrorNotice error={error} {...(beside && { beside })} />}
        <div className="foot">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look={danger ? 'danger' : 'primary'} busy={busy}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
