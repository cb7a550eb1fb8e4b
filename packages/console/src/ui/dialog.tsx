// The browser's modal dialog: it traps the focus, closes with Escape and restores the focus.
import { type FormEvent, type KeyboardEvent, type ReactNode, useId, useLayoutEffect, useRef, useState } from 'react';
import { Button } from './button.tsx';
import { DatedPrices } from './dollars.tsx';
import { useForm } from './form.ts';
import { useDismiss } from './modal.ts';
import { ErrorNotice } from './notice.tsx';
import { type Opener, openerOf, returnFocus } from './opener.ts';
import { useToast } from './toast.tsx';

/** What had the focus before. A dialog that follows another, such as with a new secret, returns it to the opener of the first. */
const openers = new WeakMap<Element, Opener>();

export function Dialog({
  title,
  onClose,
  wide,
  lasting,
  guarded,
  children,
}: {
  title: string;
  onClose: () => void;
  wide?: boolean;
  /** Escape does not close it, because its content is shown only once. */
  lasting?: boolean;
  /** Escape asks first if something was typed or attached. */
  guarded?: boolean;
  children: ReactNode;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const hasInput = useRef(false);
  const [isAsking, setAsking] = useState(false);
  const dismiss = useDismiss(
    dialog,
    lasting ? undefined : () => (guarded && hasInput.current ? setAsking(true) : onClose()),
  );
  // Close it while it is in the DOM: only then does the browser restore the focus.
  useLayoutEffect(() => {
    const element = dialog.current!;
    const focused = document.activeElement;
    const before = focused?.closest('dialog') ?? document.querySelector('dialog[open]');
    const opener = (before && openers.get(before)) ?? (focused instanceof HTMLElement && openerOf(focused));
    if (opener) openers.set(element, opener);
    element.showModal();
    return () => {
      element.close();
      // The browser moves the focus out of a closed dialog only later.
      const { activeElement } = document;
      if (activeElement instanceof HTMLElement && element.contains(activeElement)) activeElement.blur();
      // The one below it may still be open.
      if (before?.isConnected && focused instanceof HTMLElement && before.matches('[open]')) focused.focus();
      else if (opener) returnFocus(opener);
    };
  }, []);
  return (
    <>
      <dialog
        ref={dialog}
        className={wide ? 'dialog wide' : 'dialog'}
        aria-labelledby={id}
        onInput={(event) => {
          hasInput.current ||= isWork(event);
        }}
        {...dismiss}
      >
        <div className="body">
          <h2 id={id}>{title}</h2>
          <DatedPrices>{children}</DatedPrices>
        </div>
      </dialog>
      {isAsking && <AskToDiscard onKeep={() => setAsking(false)} onDiscard={onClose} />}
    </>
  );
}

/** A choice is quickly made again. */
function isWork({ target }: FormEvent): boolean {
  return target instanceof Element && !target.matches('select, [type="radio"], [type="checkbox"]');
}

function AskToDiscard({ onKeep, onDiscard }: { onKeep: () => void; onDiscard: () => void }) {
  return (
    <Dialog title="Discard changes?" onClose={onKeep}>
      <p>What you entered will be lost.</p>
      <div className="foot">
        <Button onClick={onKeep}>Keep editing</Button>
        <Button look="danger" onClick={onDiscard}>
          Discard
        </Button>
      </div>
    </Dialog>
  );
}

/** In a text of several lines, Enter starts a line. */
function submitOnCommandEnter(event: KeyboardEvent<HTMLFormElement>): void {
  if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || !(event.target instanceof HTMLTextAreaElement))
    return;
  event.preventDefault();
  event.currentTarget.requestSubmit();
}

/** A form in a dialog. It closes when `submit` succeeds, and stays open with the error when it fails. */
export function FormDialog({
  title,
  action,
  danger,
  wide,
  beside,
  submit,
  onClose,
  dismiss = 'Cancel',
  done,
  children,
}: {
  title: string;
  /** The label of the submit button. */
  action: string;
  /** That of the other one, if the action is itself to cancel something. */
  dismiss?: string;
  danger?: boolean;
  wide?: boolean;
  /** Fields that show their own errors (`ErrorNotice`). */
  beside?: readonly string[];
  submit: () => Promise<unknown>;
  /** What a toast says afterwards. */
  done?: string;
  onClose: () => void;
  children: ReactNode;
}) {
  const toast = useToast();
  const { props, busy, error } = useForm(async () => {
    await submit();
    if (done !== undefined) toast(done);
    onClose();
  });
  return (
    <Dialog title={title} onClose={onClose} guarded {...(wide && { wide })}>
      <form className="stack" {...props} onKeyDown={submitOnCommandEnter}>
        {children}
        {error !== undefined && <ErrorNotice error={error} {...(beside && { beside })} />}
        <div className="foot">
          <Button onClick={onClose}>{dismiss}</Button>
          <Button type="submit" look={danger ? 'danger' : 'primary'} busy={busy}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
