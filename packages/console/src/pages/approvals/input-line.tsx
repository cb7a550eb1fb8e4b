import { Fragment } from 'react';
import { PlainText } from '../../ui/text.tsx';
import { valueLine } from './groups.ts';
import { isFields } from './input-draft.ts';

/** The input in one line. The values are what differs from one call to the next. */
export function InputLine({ input }: { input: unknown }) {
  if (!isFields(input)) return <PlainText text={valueLine(input)} />;
  const fields = Object.entries(input);
  return (
    <span className="input-line">
      {fields.length === 0 && <span className="name">no input</span>}
      {fields.map(([name, value], at) => (
        <Fragment key={name}>
          {at > 0 && ' · '}
          <span className="name">
            <PlainText text={name} />
          </span>{' '}
          <PlainText text={valueLine(value)} />
        </Fragment>
      ))}
    </span>
  );
}
