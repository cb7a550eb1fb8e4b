// The files of a session: what users attached, and what tools created.
import { Files } from 'lucide-react';
import { Button } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty-state.tsx';
import { FileView } from './file-view.tsx';
import type { FollowedSession } from './use-session.ts';

export function SessionFiles({
  followed: { entries, hasOlder, isReadingOlder, readOlder },
}: {
  followed: FollowedSession;
}) {
  const found = entries.flatMap((entry) =>
    entry.kind === 'user' || entry.kind === 'call'
      ? (entry.files ?? []).map((file) => ({ file, turn: entry.turn, by: entry.kind }))
      : [],
  );
  return (
    <div className="stack session-files">
      {found.length === 0 && !hasOlder && (
        <EmptyState icon={Files} title="No files">
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
      {hasOlder && (
        <div>
          <Button busy={isReadingOlder} onClick={readOlder}>
            Look in earlier messages
          </Button>
        </div>
      )}
    </div>
  );
}
