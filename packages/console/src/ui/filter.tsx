import { type Option, Select } from './field.tsx';

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
