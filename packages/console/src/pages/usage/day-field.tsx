import { useState } from 'react';
import { TextField } from '../../ui/field.tsx';

/** While a year is typed, the browser reports those of its first digits, such as 0002. */
const wholePattern = /^[1-9]\d{3}-/;

/** A day, reported once it has been typed or chosen as a whole. What was left unfinished is the day before again. */
export function DayField({
  label,
  value,
  onChange,
}: {
  label: string;
  /** `2026-11-27` */
  value: string;
  onChange: (value: string) => void;
}) {
  const [shown, setShown] = useState(value);
  const [text, setText] = useState(value);
  if (shown !== value) {
    setShown(value);
    setText(value);
  }
  return (
    <TextField
      label={label}
      quiet
      type="date"
      value={text}
      onChange={({ currentTarget: { value: next } }) => {
        setText(next);
        if (wholePattern.test(next)) onChange(next);
      }}
      onBlur={() => setText(value)}
    />
  );
}
