import { type ReactNode, useState } from 'react';
import { Badge } from '../../ui/badge.tsx';
import { Disclosure } from '../../ui/disclosure.tsx';
import { useDraft } from './draft.tsx';
import { isWithin } from './path.ts';

/** Fields that most agents leave as they are. They are rendered when they are open, or when one of them has an error. */
export function Folded({
  title,
  summary,
  fields,
  children,
}: {
  title: ReactNode;
  /** What the fields say, in a few words. */
  summary: string;
  /** The paths of the fields. */
  fields: readonly string[];
  children: ReactNode;
}) {
  const draft = useDraft();
  const [isOpen, setOpen] = useState(false);
  const isWrong = draft.shown.some(({ path }) => fields.some((field) => isWithin(path, field)));
  return (
    <Disclosure
      title={title}
      summary={summary}
      badge={isWrong && <Badge tone="bad">problem</Badge>}
      open={isOpen}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      {(isOpen || isWrong) && children}
    </Disclosure>
  );
}
