import type { KeyboardEvent } from 'react';
import { Button } from '../../ui/button.tsx';
import { Select, TextArea, TextField } from '../../ui/field.tsx';
import { fitsForm, formOf, type InputDraft, isFields, jsonOf, type Problem, readDraft } from './input-draft.ts';

// Longer texts do not fit on one line of a phone.
const LONG_CHARACTERS = 60;

/** Edits an input as a form if it is flat, else as JSON. Enter in a field ends editing; it does not send the decision. */
export function InputEditor({
  original,
  draft,
  onChange,
  problems,
  onDone,
}: {
  original: unknown;
  draft: InputDraft;
  onChange: (draft: InputDraft) => void;
  problems: readonly Problem[];
  onDone: () => void;
}) {
  const saidOf = (field: string | undefined) =>
    problems
      .filter((problem) => problem.field === field)
      .map(({ text }) => text)
      .join(' ') || undefined;
  if (draft.as === 'json') {
    const read = readDraft(draft, original);
    const value = 'value' in read ? read.value : undefined;
    const said = problems.map(({ field, text }) => (field ? `${field}: ${text}` : text)).join(' ') || undefined;
    return (
      <div className="stack tight">
        <TextArea
          label="Input as JSON"
          mono
          rows={Math.min(16, draft.text.split('\n').length + 1)}
          value={draft.text}
          onChange={(event) => onChange({ as: 'json', text: event.currentTarget.value })}
          error={said}
        />
        {fitsForm(value) && fitsForm(original) && (
          <div>
            <Button small onClick={() => onChange(formOf(value))}>
              Edit as form
            </Button>
          </div>
        )}
      </div>
    );
  }
  const read = readDraft(draft, original);
  const set = (name: string, text: string) => onChange({ as: 'form', fields: { ...draft.fields, [name]: text } });
  return (
    <div className="stack">
      {Object.entries(draft.fields).map(([name, text]) => (
        <EditedField
          key={name}
          name={name}
          text={text}
          was={isFields(original) ? original[name] : undefined}
          onChange={(next) => set(name, next)}
          onDone={onDone}
          error={saidOf(name)}
        />
      ))}
      {saidOf(undefined) && (
        <div className="field">
          <div className="error" role="alert">
            {saidOf(undefined)}
          </div>
        </div>
      )}
      {'value' in read && (
        <div>
          <Button small onClick={() => onChange(jsonOf(read.value))}>
            Edit as JSON
          </Button>
        </div>
      )}
    </div>
  );
}

function EditedField({
  name,
  text,
  was,
  onChange,
  onDone,
  error,
}: {
  name: string;
  text: string;
  was: unknown;
  onChange: (text: string) => void;
  onDone: () => void;
  error: string | undefined;
}) {
  if (typeof was === 'boolean') {
    const options = ['true', 'false'].map((value) => ({ value, label: value }));
    return (
      <Select
        label={name}
        value={text}
        options={options}
        error={error}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    );
  }
  const isLong = typeof was === 'string' && (was.length > LONG_CHARACTERS || was.includes('\n'));
  const common = {
    label: name,
    value: text,
    error,
    ...(was === null && { hint: 'Leave empty for null.' }),
  };
  if (isLong) {
    return <TextArea {...common} rows={5} onChange={(event) => onChange(event.currentTarget.value)} />;
  }
  function onKeyDown(event: KeyboardEvent) {
    if (event.key !== 'Enter') return;
    event.preventDefault();
    onDone();
  }
  return (
    <TextField
      {...common}
      onKeyDown={onKeyDown}
      {...(typeof was === 'number' && { inputMode: 'decimal' as const, mono: true })}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}
