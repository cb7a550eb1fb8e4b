import { Check } from 'lucide-react';
import type { ReactNode } from 'react';

/** `current` is the first one that is not done: only its button is primary. */
export type StepState = 'done' | 'current' | 'later';

/** A numbered step of the guide. */
export function Step({
  number,
  title,
  state,
  children,
}: {
  number: number;
  title: string;
  state: StepState;
  children: ReactNode;
}) {
  return (
    <li className="step" data-state={state} aria-current={state === 'current' ? 'step' : undefined}>
      <span className="marker" aria-hidden={state !== 'done'}>
        {state === 'done' ? (
          <>
            <Check aria-hidden="true" />
            <span className="visually-hidden">done</span>
          </>
        ) : (
          number
        )}
      </span>
      <div className="stack">
        <h2>{title}</h2>
        {children}
      </div>
    </li>
  );
}
