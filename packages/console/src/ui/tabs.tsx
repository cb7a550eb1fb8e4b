import * as Radix from '@radix-ui/react-tabs';
import type { ReactNode } from 'react';

/** Tabs. If people share links to a tab, keep the value in the URL. */
export function Tabs<T extends string>({
  label,
  value,
  onChange,
  tabs,
}: {
  label: string;
  value: T;
  onChange: (value: T) => void;
  /** `kept` keeps the tab mounted, with its input. */
  tabs: readonly { value: T; label: ReactNode; content: ReactNode; kept?: boolean }[];
}) {
  return (
    <Radix.Root className="stack" value={value} onValueChange={(next) => onChange(next as T)}>
      {/* Radix would focus the tab by a script, which browsers take for the keyboard and draw a ring. A press focuses it anyway, which
          chooses it, except in Safari. Radix keeps the other buttons from choosing one. */}
      <Radix.List
        className="tabs"
        aria-label={label}
        onMouseDownCapture={(event) => {
          const isPress = event.button === 0 && !event.ctrlKey && event.target !== event.currentTarget;
          if (isPress) event.stopPropagation();
        }}
      >
        {tabs.map((tab) => (
          <Radix.Trigger
            key={tab.value}
            value={tab.value}
            onClick={() => {
              if (tab.value !== value) onChange(tab.value);
            }}
          >
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
