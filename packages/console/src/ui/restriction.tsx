// Fields with several values of a list, some of them chosen.
import { type ReactNode, useId } from 'react';
import { Checkbox, FieldError } from './field.tsx';

interface Option<T extends string> {
  value: T;
  label: string;
  about?: string;
}

/** Some of the options. */
export function Several<T extends string>({
  label,
  options,
  value,
  error,
  onChange,
}: {
  label: string;
  options: readonly Option<T>[];
  value: readonly T[];
  error: string | undefined;
  onChange: (value: T[]) => void;
}) {
  return (
    <Group label={label} error={error}>
      <Checkboxes options={options} value={value} onChange={onChange} />
    </Group>
  );
}

/** All of the options, which is null, or some of them. */
export function Restriction({
  label,
  all,
  options,
  value,
  error,
  onChange,
}: {
  label: string;
  all: string;
  /** Undefined while they are loaded. */
  options: readonly Option<string>[] | undefined;
  value: readonly string[] | null;
  error: string | undefined;
  onChange: (value: string[] | null) => void;
}) {
  // One that was chosen before and is no longer listed can still be removed.
  const unlisted = (value ?? []).filter((one) => options && !options.some((option) => option.value === one));
  return (
    <Group label={label} error={error}>
      <Checkbox
        label={all}
        checked={value === null}
        onChange={(event) => onChange(event.currentTarget.checked ? null : [])}
      />
      {value !== null && options && (
        <Checkboxes
          options={[...options, ...unlisted.map((one) => ({ value: one, label: one }))]}
          value={value}
          onChange={onChange}
        />
      )}
    </Group>
  );
}

function Group({ label, error, children }: { label: string; error: string | undefined; children: ReactNode }) {
  const id = useId();
  return (
    <fieldset className="field" aria-describedby={error && id}>
      <legend>{label}</legend>
      {children}
      {error && <FieldError id={id} label={label} error={error} />}
    </fieldset>
  );
}

function Checkboxes<T extends string>({
  options,
  value,
  onChange,
}: {
  options: readonly Option<T>[];
  value: readonly T[];
  onChange: (value: T[]) => void;
}) {
  return (
    <div className="options">
      {options.map((option) => (
        <Checkbox
          key={option.value}
          label={
            <>
              {option.label}
              {option.about && <span className="quiet small"> {option.about}</span>}
            </>
          }
          checked={value.includes(option.value)}
          onChange={(event) =>
            onChange(
              event.currentTarget.checked ? [...value, option.value] : value.filter((one) => one !== option.value),
            )
          }
        />
      ))}
    </div>
  );
}
