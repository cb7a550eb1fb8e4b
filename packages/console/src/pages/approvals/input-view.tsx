// What a tool would be called with, so that a person can read it. All of it is text that an agent wrote.
import { Fragment, useId, useState } from 'react';
import { Button } from '../../ui/button.tsx';
import { Json } from '../../ui/copy.tsx';
import { codePoint, unseenApart } from '../../words.ts';
import { isFields, same } from './input-draft.ts';

/** Fields in rows, what is nested in them as JSON. With `before`, what has changed against it says so. */
export function InputView({ value, before }: { value: unknown; before?: unknown }) {
  if (!isFields(value)) return <Json value={value} />;
  const was = isFields(before) ? before : undefined;
  const gone = Object.keys(was ?? {}).filter((name) => !Object.hasOwn(value, name));
  if (Object.keys(value).length === 0 && gone.length === 0) return <p className="quiet">No input.</p>;
  return (
    <dl className="facts input-fields">
      {Object.entries(value).map(([name, one]) => {
        const changed = was !== undefined && !same(was[name], one);
        return (
          <Fragment key={name}>
            <dt>
              <PlainText text={name} />
            </dt>
            <dd>
              <Value value={one} />
              {changed && (
                <div className="small quiet">
                  {Object.hasOwn(was, name) ? (
                    <>
                      asked for: <Value value={was[name]} />
                    </>
                  ) : (
                    'was not asked for'
                  )}
                </div>
              )}
            </dd>
          </Fragment>
        );
      })}
      {gone.map((name) => (
        <Fragment key={name}>
          <dt>
            <PlainText text={name} />
          </dt>
          <dd className="small quiet">
            left out; asked for: <Value value={was![name]} />
          </dd>
        </Fragment>
      ))}
    </dl>
  );
}

function Value({ value }: { value: unknown }) {
  if (typeof value === 'string') return value === '' ? <span className="quiet">empty</span> : <LongText text={value} />;
  if (value !== null && typeof value === 'object') return <Json value={value} />;
  return <code>{String(value)}</code>;
}

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
          <code className="unseen" key={index} title="A character that is not seen">
            {codePoint(part)}
          </code>
        ) : (
          part
        ),
      )}
    </bdi>
  );
}
