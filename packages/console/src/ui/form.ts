// A form that is sent once at a time and shows why it was refused.
import { SignalboxError } from '@signalbox/client';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { fieldError } from './notice.tsx';

/**
 * `send` rejects if the form is refused. Afterwards the focus is on the first field that has an error. `props` are those of the
 * `<form>`.
 */
export function useForm(send: (form: HTMLFormElement) => Promise<unknown>) {
  const ref = useRef<HTMLFormElement>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    if (error === undefined) return;
    // A mutation tells its observers in a timer that it set before this one; their fields show the error then.
    const timer = setTimeout(() => focusInvalid(ref.current));
    return () => clearTimeout(timer);
  }, [error]);
  async function onSubmit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setError(undefined);
    try {
      await send(event.currentTarget);
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  }
  return {
    props: { ref, onSubmit, noValidate: true },
    busy,
    error,
    setError,
    /** The service's error for a field. */
    errorOf: (field: string) => fieldError(error, field),
  };
}

/** The refusal of a field by the form itself, as the service would refuse it. */
export function refusal(path: string, message: string): SignalboxError {
  return new SignalboxError({ status: 400, code: 'invalid_request', detail: '', errors: [{ path, message }] });
}

function focusInvalid(form: HTMLFormElement | null): void {
  const input = form?.querySelector<HTMLElement>('[aria-invalid="true"]');
  if (!input) return;
  for (let up = input.closest('details'); up; up = up.parentElement!.closest('details')) up.open = true;
  input.focus();
}
