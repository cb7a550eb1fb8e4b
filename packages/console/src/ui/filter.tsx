import { useEffect, useState } from 'react';
import { type Option, Select, TextField } from './field.tsx';

/**
 * A filter of text that lives in the URL: it counts when the person is done (Enter, or going on), and not before it is whole.
 */
export function FilterField({
  label,
  value,
  onChange,
  pattern,
  refusal,
  placeholder,
}: {
  label: string;
  /** As the URL has it; empty: none. */
  value: string;
  onChange: (value: string) => void;
  /** What is no filter, and what to say of it. */
  pattern?: RegExp;
  refusal?: string;
  placeholder?: string;
}) {
  const [text, setText] = useState(value);
  const [wrong, setWrong] = useState(false);
  // Somebody followed a link, or went back.
  useEffect(() => {
    setText(value);
    setWrong(false);
  }, [value]);
  function done() {
    const next = text.trim();
    const isWrong = next !== '' && pattern !== undefined && !pattern.test(next);
    setWrong(isWrong);
    if (!isWrong && next !== value) onChange(next);
  }
  return (
    <TextField
      label={label}
      mono
      type="search"
      placeholder={placeholder}
      value={text}
      error={wrong ? refusal : undefined}
      onChange={(event) => setText(event.currentTarget.value)}
      onBlur={done}
      onKeyDown={(event) => event.key === 'Enter' && done()}
    />
  );
}

/** A filter that is one of a list, or none. What the URL names is shown as chosen also where the list does not have it. */
export function FilterSelect<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: T | undefined;
  options: readonly Option<T>[];
  onChange: (value: T | '') => void;
}) {
  const isKnown = value === undefined || options.some((option) => option.value === value);
  return (
    <Select
      label={label}
      value={value ?? ''}
      options={[{ value: '', label: 'All' }, ...options, ...(isKnown ? [] : [{ value, label: value }])]}
      onChange={(event) => onChange(event.currentTarget.value as T | '')}
    />
  );
}
