import { useEffect, useState } from 'react';
import { type Option, Select, TextField } from './field.tsx';

/** A text filter in the URL. It applies on Enter or blur, and only if it is valid. */
export function FilterField({
  label,
  value,
  onChange,
  pattern,
  refusal,
  placeholder,
}: {
  label: string;
  /** The value in the URL. Empty for none. */
  value: string;
  onChange: (value: string) => void;
  /** The pattern of valid values, and the error for others. */
  pattern?: RegExp;
  refusal?: string;
  placeholder?: string;
}) {
  const [text, setText] = useState(value);
  const [wrong, setWrong] = useState(false);
  // The URL changed by a link or by going back.
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

/** A filter with a list of values. A value from the URL is shown even if the list does not contain it. */
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
