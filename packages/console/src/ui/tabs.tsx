import * as Radix from '@radix-ui/react-tabs';
import type { ReactNode } from 'react';

/** Views of one thing. Which one is shown belongs in the URL where people send links to it. */
export function Tabs<T extends string>({
  label,
  value,
  onChange,
  tabs,
}: {
  label: string;
  value: T;
  onChange: (value: T) => void;
  /** `kept`: what somebody left there is there when they come back. */
  tabs: readonly { value: T; label: ReactNode; content: ReactNode; kept?: boolean }[];
}) {
  return (
    <Radix.Root className="stack" value={value} onValueChange={(next) => onChange(next as T)}>
      <Radix.List className="tabs" aria-label={label}>
        {tabs.map((tab) => (
          <Radix.Trigger key={tab.value} value={tab.value}>
            {tab.label}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {tabs.map((tab) => (
        <Radix.Content key={tab.value} value={tab.value} className="stack" {...(tab.kept && { forceMount: true })}>
          {tab.content}
        </Radix.Content>
      ))}
    </Radix.Root>
  );
}
