// Inputs bound to a path of the draft.
import { type ReactNode, useState } from 'react';
import { Checkbox, Select, TextArea, TextField } from '../../ui/field.tsx';
import { sameJson } from './definition.ts';
import { readJson, useDraft } from './draft.tsx';

interface FieldProps {
  path: string;
  label: string;
  hint?: ReactNode;
}

/** Text. `optional`: an empty input removes the field. */
export function DraftText({
  path,
  label,
  hint,
  optional,
  mono,
  lines,
  placeholder,
}: FieldProps & { optional?: boolean; mono?: boolean; lines?: number; placeholder?: string }) {
  const draft = useDraft();
  const input = {
    label,
    hint,
    placeholder,
    'data-path': path,
    value: textOf(draft.get(path)),
    error: draft.errorAt(path),
    onChange: ({ currentTarget }: { currentTarget: { value: string } }) =>
      draft.set(path, optional && currentTarget.value === '' ? undefined : currentTarget.value),
    ...(mono && { mono }),
  };
  return lines ? <TextArea {...input} rows={lines} /> : <TextField {...input} spellCheck={mono ? false : undefined} />;
}

/** A setting that is off unless it is checked. */
export function DraftCheckbox({ path, label, hint }: { path: string; label: string; hint: string }) {
  const draft = useDraft();
  return (
    <Checkbox
      label={
        <>
          {label} <span className="quiet small">{hint}</span>
        </>
      }
      data-path={path}
      checked={draft.get(path) === true}
      onChange={({ currentTarget }) => draft.set(path, currentTarget.checked)}
    />
  );
}

/** A whole number. An empty input is null if the field is nullable; else it removes the field, and the default applies. */
export function DraftNumber({ path, label, hint, nullable }: FieldProps & { nullable?: boolean }) {
  const draft = useDraft();
  return (
    <TextField
      label={label}
      hint={hint}
      data-path={path}
      inputMode="numeric"
      value={textOf(draft.get(path))}
      error={draft.errorAt(path)}
      onChange={({ currentTarget: { value } }) => {
        if (value.trim() === '') return draft.set(path, nullable ? null : undefined);
        // A text that is not a number is kept as typed, and the schema reports it.
        draft.set(path, /^-?\d{1,15}$/.test(value.trim()) ? Number(value) : value);
      }}
    />
  );
}

/** One of several values; '' removes the field. */
export function DraftSelect({
  path,
  label,
  hint,
  options,
}: FieldProps & { options: readonly { value: string; label: string }[] }) {
  const draft = useDraft();
  const value = textOf(draft.get(path));
  return (
    <Select
      label={label}
      hint={hint}
      data-path={path}
      value={value}
      error={draft.errorAt(path)}
      onChange={({ currentTarget }) => draft.set(path, currentTarget.value || undefined)}
      options={withPresent(options, value)}
    />
  );
}

/** Adds the current value to the options if it is not one of them, because the JSON can have any value. */
export function withPresent(options: readonly { value: string; label: string }[], value: string) {
  return options.some((one) => one.value === value) ? options : [...options, { value, label: value || 'Choose' }];
}

/** A value as JSON. */
export function DraftJson({
  path,
  label,
  hint,
  lines = 6,
  quiet,
  readOnly,
  className,
}: FieldProps & { lines?: number; quiet?: boolean; readOnly?: boolean; className?: string }) {
  const draft = useDraft();
  const [typed, setTyped] = useState('');
  const value = draft.get(path);
  // The text is kept as typed until the value changes.
  const read = readJson(typed);
  const isTyped = 'value' in read && sameJson(read.value, value);
  const text = draft.unreadText(path) ?? (isTyped ? typed : value === undefined ? '' : JSON.stringify(value, null, 2));
  return (
    <div className={className}>
      <TextArea
        mono
        label={label}
        hint={hint}
        data-path={path}
        rows={lines}
        readOnly={readOnly}
        value={text}
        error={draft.errorAt(path, { within: path !== '' })}
        {...(quiet && { quiet })}
        onChange={({ currentTarget }) => {
          setTyped(currentTarget.value);
          draft.setText(path, currentTarget.value);
        }}
      />
    </div>
  );
}

export function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
