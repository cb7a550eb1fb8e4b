// Untrusted text from agents, tools and users: always shown as text, with invisible characters made visible.
import { Fragment, type ReactNode, useId, useState } from 'react';
import { codePoint, splitInvisible } from '../lib/text-format.ts';
import { Button } from './button.tsx';

// Fits a phone's screen above the buttons.
const SHOWN_CHARACTERS = 400;
const SHOWN_LINES = 8;

/** A text of any length: its start, and the rest on demand. */
export function LongText({ text }: { text: string }) {
  const [whole, setWhole] = useState(false);
  const id = useId();
  const start = text.split('\n', SHOWN_LINES).join('\n').slice(0, SHOWN_CHARACTERS);
  if (start.length === text.length) return <PlainText text={text} />;
  return (
    <>
      <span id={id}>
        <PlainText text={whole ? text : `${start}…`} />
      </span>{' '}
      <Button small aria-expanded={whole} aria-controls={id} onClick={() => setWhole(!whole)}>
        {whole ? 'Show less' : `Show all ${text.length.toLocaleString('en')} characters`}
      </Button>
    </>
  );
}

/** Text with its line breaks. Invisible and bidirectional control characters are shown as code points. */
export function PlainText({ text }: { text: string }) {
  return <bdi className="plain-text">{visible(text)}</bdi>;
}

/** The text, with invisible characters as code points. */
export function visible(text: string): ReactNode {
  const parts = splitInvisible(text);
  if (parts.length === 1) return text;
  return parts.map((part, index) =>
    index % 2 === 1 ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text never move
      <code className="unseen" key={index} title="An invisible character">
        {codePoint(part)}
      </code>
    ) : (
      part
    ),
  );
}

/** A name or an address without spaces: its lines break after a sign, not within a word. */
export function Breakable({ text }: { text: string }) {
  return text.split(/(?<=[/.?&=_])(?![/.])/).map((part, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a text in their order
    <Fragment key={index}>
      {part}
      <wbr />
    </Fragment>
  ));
}
