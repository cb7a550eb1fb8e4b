// Text that an agent, a tool or a person brought in: always as text, with nothing in it unseen.
import { useId, useState } from 'react';
import { codePoint, unseenApart } from '../words.ts';
import { Button } from './button.tsx';

// What fits a phone's screen above the buttons.
const SHOWN_CHARACTERS = 400;
const SHOWN_LINES = 8;

/** A text of any length: its beginning, and the whole on demand. */
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

/** Text as it is: its lines kept, and characters that would hide or turn something named by their number. */
export function PlainText({ text }: { text: string }) {
  return (
    <bdi className="plain-text">
      {unseenApart(text).map((part, index) =>
        index % 2 === 1 ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text never move
          <code className="unseen" key={index} title="An invisible character">
            {codePoint(part)}
          </code>
        ) : (
          part
        ),
      )}
    </bdi>
  );
}
