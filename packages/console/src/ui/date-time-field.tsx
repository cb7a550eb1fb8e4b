import type { ComponentProps } from 'react';
import { TextField } from './field.tsx';
import { useTimeZone } from './time.tsx';

/** A date and a time, in the zone that the hint names. `instantOf` and `localOf` (local-time.ts) convert its value. */
export function DateTimeField(props: Omit<ComponentProps<typeof TextField>, 'type' | 'hint'>) {
  return <TextField step={1} {...props} type="datetime-local" hint={`Time zone: ${useTimeZone()}`} />;
}
