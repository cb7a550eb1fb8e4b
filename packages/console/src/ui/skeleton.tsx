// The shape of what is loading, so that nothing moves when it arrives.
import type { ReactNode } from 'react';
import { useNoteLoading } from './slow.tsx';

/** Around skeletons: says to screen readers that something is loading. */
function WhileLoading({ children }: { children: ReactNode }) {
  useNoteLoading();
  return (
    <div className="stack" role="status">
      <span className="visually-hidden">Loading…</span>
      {children}
    </div>
  );
}

/** Lines of text. Their width varies, as that of text does. */
function SkeletonLines({ lines = 3 }: { lines?: number }) {
  return (
    <div className="skeleton-lines" aria-hidden="true">
      {Array.from({ length: lines }, (_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines are all alike
        <Bone key={index} at={index} />
      ))}
    </div>
  );
}

/** One line, in the width of its place. `at` varies the width. */
export function Bone({ at = 0 }: { at?: number }) {
  return <span className={`bone bone-${at % 4}`} aria-hidden="true" />;
}

/** A page of one or more cards with text. */
export function SkeletonCards({ cards = 2, lines = 3 }: { cards?: number; lines?: number }) {
  return (
    <WhileLoading>
      {Array.from({ length: cards }, (_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the cards are all alike
        <div className="card" key={index}>
          <SkeletonLines lines={lines} />
        </div>
      ))}
    </WhileLoading>
  );
}

/** A row of figures. */
export function SkeletonFigures({ figures = 4 }: { figures?: number }) {
  return (
    <WhileLoading>
      <div className="figures" aria-hidden="true">
        {Array.from({ length: figures }, (_, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the figures are all alike
          <div className="figure-card" key={index}>
            <Bone at={index} />
          </div>
        ))}
      </div>
    </WhileLoading>
  );
}

const ROWS = 8;

/** A list of rows, such as of events. */
export function SkeletonRows({ rows = ROWS }: { rows?: number }) {
  return (
    <WhileLoading>
      <div className="data-frame" aria-hidden="true">
        {Array.from({ length: rows }, (_, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the rows are all alike
          <div className="skeleton-row" key={index}>
            <Bone at={index} />
          </div>
        ))}
      </div>
    </WhileLoading>
  );
}
