// Inputs bound to a path of the draft.
import { createContext, type ReactNode, useContext, useState } from 'react';
import { CodeEditor } from '../../ui/code-editor.tsx';
import type { JsonSchema } from '../../ui/editor/schema-at.ts';
import { Checkbox, Select, TextArea, TextField } from '../../ui/field.tsx';
import { sameJson } from './definition.ts';
import { readJson, useDraft } from './draft.tsx';
import { isWithin } from './path.ts';

/** A disabled fieldset does not reach the editors in it. */
export const FormContext = createContext({ isReadOnly: false });

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

/** A long text, such as instructions, as Markdown. */
export function DraftMarkdown({
  path,
  label,
  hint,
  lines,
  mostLines,
  placeholder,
  quiet,
  readOnly,
}: FieldProps & { lines: number; mostLines: number; placeholder?: string; quiet?: boolean; readOnly: boolean }) {
  const draft = useDraft();
  return (
    <CodeEditor
      {...{ label, hint, lines, mostLines }}
      {...(placeholder !== undefined && { placeholder })}
      {...(quiet && { quiet })}
      language="markdown"
      data-path={path}
      value={textOf(draft.get(path))}
      error={draft.errorAt(path)}
      {...(!readOnly && { onChange: (text: string) => draft.set(path, text) })}
    />
  );
}

/** A value as JSON. Its problems are at their lines. */
export function DraftJson({
  path,
  label,
  hint,
  lines = 4,
  mostLines,
  quiet,
  schema,
  validates,
  listed,
  indentsWithTab,
}: FieldProps & {
  lines?: number;
  mostLines?: number;
  quiet?: boolean;
  /** Completes, explains and validates the value. */
  schema?: object;
  validates?: boolean;
  listed?: boolean;
  indentsWithTab?: boolean;
}) {
  const draft = useDraft();
  const { isReadOnly } = useContext(FormContext);
  const [typed, setTyped] = useState('');
  const value = draft.get(path);
  // The text is kept as typed until the value changes.
  const read = readJson(typed);
  const isTyped = 'value' in read && sameJson(read.value, value);
  const text = draft.unreadText(path) ?? (isTyped ? typed : value === undefined ? '' : JSON.stringify(value, null, 2));
  const problems = draft.shown
    .filter((one) => isWithin(one.path, path))
    .map((one) => ({ ...one, path: one.path.slice(path.length).replace(/^\./, '') }));
  return (
    <CodeEditor
      {...{ label, hint, lines, problems }}
      {...(mostLines !== undefined && { mostLines })}
      {...(quiet && { quiet })}
      {...(validates !== undefined && { validates })}
      {...(listed !== undefined && { listed })}
      {...(indentsWithTab && { indentsWithTab })}
      {...(schema && { schema: schema as JsonSchema })}
      language="json"
      data-path={path}
      value={text}
      {...(!isReadOnly && {
        onChange: (next: string) => {
          setTyped(next);
          draft.setText(path, next);
        },
      })}
    />
  );
}

export function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
