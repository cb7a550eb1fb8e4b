// The files of a session: what users attached, and what tools created.
import { Files } from 'lucide-react';
import { useEffect, useState } from 'react';
import { Button } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty-state.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { SkeletonCards } from '../../ui/skeleton.tsx';
import { FileView } from './file-view.tsx';
import type { FollowedSession } from './use-session.ts';

// Pages have 50 messages each. A click looks through as many again.
const PAGES_AT_ONCE = 20;

export function SessionFiles({
  followed: { entries, hasOlder, isCaughtUp, isReadingOlder, olderError, readOlder },
}: {
  followed: FollowedSession;
}) {
  const found = entries.flatMap((entry) =>
    entry.kind === 'user' || entry.kind === 'call'
      ? (entry.files ?? []).map((file) => ({ file, turn: entry.turn, by: entry.kind }))
      : [],
  );
  // In a long session, the first messages often have the files.
  const [pagesLeft, setPagesLeft] = useState(PAGES_AT_ONCE);
  const looks = found.length === 0 && hasOlder && pagesLeft > 0 && olderError === undefined;
  useEffect(() => {
    if (looks) void readOlder().then(() => setPagesLeft(pagesLeft - 1));
  }, [looks, pagesLeft, readOlder]);
  const isLooking = looks || isReadingOlder;
  function lookFurther(): Promise<void> {
    setPagesLeft(PAGES_AT_ONCE);
    return readOlder();
  }
  return (
    <div className="stack session-files">
      {found.length === 0 && !isCaughtUp && <SkeletonCards cards={1} />}
      {found.length === 0 && isCaughtUp && !isLooking && (
        <EmptyState icon={Files} title={hasOlder ? 'No files in the latest messages' : 'No files'}>
          Files that users attach and tools create appear here.
        </EmptyState>
      )}
      {found.map(({ file, turn, by }) => (
        <div className="card" key={`${turn} ${file.fileId}`}>
          <p className="quiet small">
            {by === 'user' ? 'Attached' : 'Created by a tool'}
            {turn !== null && ` in turn ${turn}`}
          </p>
          <FileView file={file} />
        </div>
      ))}
      {olderError !== undefined && <ErrorNotice error={olderError} retry={lookFurther} />}
      {hasOlder && olderError === undefined && (
        <div className="row">
          <Button busy={isLooking} onClick={lookFurther}>
            {isLooking ? 'Looking in earlier messages' : 'Look in earlier messages'}
          </Button>
        </div>
      )}
    </div>
  );
}
