import type { ReactNode } from 'react';
import { PlainText } from './text.tsx';

/** The first cell of a row: what a person recognizes, then the words after it in a quieter color. All of it is user input. */
export function RowTitle({
  title,
  about,
  badge,
}: {
  title: string;
  about?: string | null | undefined;
  badge?: ReactNode;
}) {
  return (
    <span className="row-title">
      <strong>
        <PlainText text={title} />
      </strong>
      {badge}
      {about && (
        <span className="quiet" dir="auto">
          <PlainText text={about} />
        </span>
      )}
    </span>
  );
}
