// The input of a tool call, for reading. An agent wrote it, so all of it is shown as text.
import { Fragment } from 'react';
import { Json } from '../../ui/copy.tsx';
import { LongText, PlainText } from '../../ui/text.tsx';
import { isFields, same } from './input-draft.ts';

/** Fields as rows, and nested values as JSON. With `before`, marks the fields that changed. */
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
                      requested: <Value value={was[name]} />
                    </>
                  ) : (
                    'not in the request'
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
            removed; requested: <Value value={was![name]} />
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
