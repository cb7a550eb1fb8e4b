// Labelled inputs. Screen readers read the hint and the error with the input.
import {
  type ComponentProps,
  type InputHTMLAttributes,
  type ReactElement,
  type ReactNode,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useId,
} from 'react';
import { useTimeZone } from './time.tsx';

interface Labelled {
  label: string;
  hint?: ReactNode;
  error?: string | undefined;
  /** Shows the label only to screen readers, if the context makes it clear. */
  quiet?: boolean;
}

interface Ties {
  id: string;
  'aria-describedby'?: string;
  'aria-invalid'?: true;
}

/**
 * Wraps an input. `children` receives the attributes that tie it to its label, hint and error. `onLabel`: focuses an input that is not
 * an element of forms, which then names the label by `aria-labelledby`.
 */
export function Field({
  label,
  hint,
  error,
  quiet,
  onLabel,
  children,
}: Labelled & { onLabel?: () => void; children: (ties: Ties) => ReactElement }) {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ');
  return (
    <div className="field">
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: a click on a label only moves the focus */}
      <label id={`${id}-label`} htmlFor={id} className={quiet ? 'visually-hidden' : undefined} onClick={onLabel}>
        {label}
      </label>
      {children({
        id,
        ...(described && { 'aria-describedby': described }),
        ...(error && { 'aria-invalid': true as const }),
      })}
      {hint && (
        <div className="hint" id={`${id}-hint`}>
          {hint}
        </div>
      )}
      {error && <FieldError id={`${id}-error`} label={label} error={error} />}
    </div>
  );
}

/** What is wrong with a field. */
export function FieldError({ id, label, error }: { id: string; label: string; error: string }) {
  return (
    <div className="error" id={id} role="alert">
      {errorSentence(label, error)}
    </div>
  );
}

/** The service says “must not be empty” of a path; people read the name of the field. Whole sentences stay as they are. */
function errorSentence(label: string, error: string): string {
  const sentence = /^\p{Ll}/u.test(error) ? `${label} ${error}` : error;
  return /[.?!…”"]$/.test(sentence) ? sentence : `${sentence}.`;
}

export function TextField({
  label,
  hint,
  error,
  quiet,
  mono,
  ...input
}: Labelled & { mono?: boolean } & InputHTMLAttributes<HTMLInputElement>) {
  return (
    <Field {...{ label, hint, error }} {...(quiet && { quiet })}>
      {(ties) => <input autoComplete="off" {...input} {...ties} className={mono ? 'input mono' : 'input'} />}
    </Field>
  );
}

/** A date and a time, in the zone that the hint names. `instantOf` and `localOf` (local-time.ts) convert its value. */
export function DateTimeField(props: Omit<ComponentProps<typeof TextField>, 'type' | 'hint'>) {
  return <TextField step={1} {...props} type="datetime-local" hint={`Time zone: ${useTimeZone()}`} />;
}

export function TextArea({
  label,
  hint,
  error,
  quiet,
  mono,
  ...input
}: Labelled & { mono?: boolean } & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  return (
    <Field {...{ label, hint, error }} {...(quiet && { quiet })}>
      {(ties) => (
        <textarea
          dir={mono ? undefined : 'auto'}
          spellCheck={mono ? false : undefined}
          {...input}
          {...ties}
          className={mono ? 'input mono' : 'input'}
        />
      )}
    </Field>
  );
}

export interface Option<T extends string = string> {
  value: T;
  label: string;
}

export function Select({
  label,
  hint,
  error,
  quiet,
  options,
  ...input
}: Labelled & { options: readonly Option[] } & SelectHTMLAttributes<HTMLSelectElement>) {
  return (
    <Field {...{ label, hint, error }} {...(quiet && { quiet })}>
      {(ties) => (
        <select {...input} {...ties} className="input">
          {options.map(({ value, label: text }) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** Radio buttons with explanations. */
export function Choices<T extends string>({
  label,
  value,
  onChange,
  options,
}: {
  label: string;
  value: T;
  onChange: (value: T) => void;
  options: readonly { value: T; label: string; about?: ReactNode }[];
}) {
  const id = useId();
  return (
    <fieldset>
      <legend>{label}</legend>
      {options.map((option) => (
        <label className="choice" key={option.value}>
          <input
            type="radio"
            name={id}
            value={option.value}
            checked={option.value === value}
            onChange={() => onChange(option.value)}
          />
          <span>
            {option.label}
            {option.about && <span className="quiet small"> {option.about}</span>}
          </span>
        </label>
      ))}
    </fieldset>
  );
}

export function Checkbox({ label, ...input }: { label: ReactNode } & InputHTMLAttributes<HTMLInputElement>) {
  return (
    <label className="choice">
      <input type="checkbox" {...input} />
      <span>{label}</span>
    </label>
  );
}

/** The values of a form's inputs by name. */
export function textsOf<N extends string>(form: HTMLFormElement, names: readonly N[]): Record<N, string> {
  const data = new FormData(form);
  return Object.fromEntries(names.map((name) => [name, String(data.get(name) ?? '')])) as Record<N, string>;
}
