// Inputs and outputs of tool calls: any JSON, up to a mebibyte.
import { type ReactNode, useState } from 'react';
import { Button } from '../../ui/button.tsx';
import { Json } from '../../ui/copy.tsx';
import { LongText, visible } from '../../ui/text.tsx';

// Longer values are collapsed.
const SHORT_CHARACTERS = 600;
/** Longer values are shown on demand, a megabyte of text takes a moment to lay out. */
const MAX_SHOWN_CHARACTERS = 100_000;
const GIST_CHARACTERS = 160;

/** A value that may be long, collapsed behind its label. */
export function Fold({
  label,
  value,
  open,
  children,
}: {
  label: string;
  value: unknown;
  open?: boolean;
  children: ReactNode;
}) {
  const size = JSON.stringify(value)?.length ?? 0;
  const isShort = size <= SHORT_CHARACTERS;
  const [isOpen, setOpen] = useState(isShort || (open === true && size <= MAX_SHOWN_CHARACTERS));
  return (
    <details className="fold" open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        {label} {!isShort && <span className="quiet small">{size.toLocaleString('en')} characters</span>}
      </summary>
      {/* Nothing is made of a long value that nobody looks at. */}
      {isOpen && <div className="within">{children}</div>}
    </details>
  );
}

/** A text, or JSON in colors. The rest of a very long one on demand. */
export function ValueView({ value }: { value: unknown }) {
  const [isWhole, setWhole] = useState(false);
  if (typeof value === 'string') return <LongText text={value} />;
  const text = JSON.stringify(value, null, 2) ?? 'null';
  if (isWhole || text.length <= MAX_SHOWN_CHARACTERS) return <Json value={value} />;
  return (
    <div className="stack tight">
      <pre className="code-start">{visible(text.slice(0, MAX_SHOWN_CHARACTERS))}…</pre>
      <div>
        <Button small onClick={() => setWhole(true)}>
          Show all {text.length.toLocaleString('en')} characters
        </Button>
      </div>
    </div>
  );
}

/** The values of an input, in one line. */
export function gistOf(input: unknown): ReactNode {
  if (input === null || input === undefined) return null;
  const values = typeof input === 'object' ? Object.values(input) : [input];
  let text = '';
  for (const value of values) {
    if (text.length > GIST_CHARACTERS) break;
    const shown = typeof value === 'string' ? value.slice(0, GIST_CHARACTERS) : typeof value === 'object' ? '…' : value;
    text += `${text === '' ? '' : ' · '}${String(shown)}`;
  }
  return visible(text.slice(0, GIST_CHARACTERS).replaceAll('\n', ' '));
}
