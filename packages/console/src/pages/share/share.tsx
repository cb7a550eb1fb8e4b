// What a share link shows, to anyone who has it: the conversation of one session, which follows it while it runs. The token is in the
// fragment, which no server sees; nothing else of the organization is asked for or shown.
import { type FilePart, SignalboxError } from '@signalbox/client';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Bot, UserRound } from 'lucide-react';
import { useState } from 'react';
import { consoleCall } from '../../data/account.ts';
import { Badge, Status } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { SkeletonRows } from '../../ui/skeleton.tsx';
import { StandalonePage } from '../../ui/standalone-page.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { CallLine, CallResult } from '../sessions/call-parts.tsx';
import { Fold, ValueView } from '../sessions/call-values.tsx';
import { type CallEntry, type Entry, entriesOf, userEntry } from '../sessions/conversation.ts';
import { FileCaption } from '../sessions/file-caption.tsx';
import { MessageText } from '../sessions/message.tsx';
import '../sessions/session.css';
import './share.css';

const EVERY_MS = 3000;

export function SharePage() {
  const [token] = useState(() => location.hash.slice(1));
  const query = useInfiniteQuery({
    queryKey: ['share', token],
    initialPageParam: '',
    queryFn: ({ pageParam }) => consoleCall('POST /shares/read', { token, ...(pageParam && { cursor: pageParam }) }),
    getNextPageParam: ({ page }) => (page.hasMore ? page.nextCursor : undefined),
    // Who reads earlier messages isn't interrupted.
    refetchInterval: ({ state }) => {
      const [newest, ...older] = state.data?.pages ?? [];
      const hasEnded = newest && ['completed', 'failed', 'cancelled'].includes(newest.status);
      return state.error || hasEnded || older.length > 0 ? false : EVERY_MS;
    },
  });
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  if (error instanceof SignalboxError && error.code === 'link_invalid') {
    return (
      <StandalonePage title="This link shows nothing any more">
        <p>{error.detail}</p>
      </StandalonePage>
    );
  }
  const [newest] = data?.pages ?? [];
  if (!newest) {
    return (
      <StandalonePage title="Shared conversation">
        {error ? <ErrorNotice error={error} retry={() => refetch()} /> : <SkeletonRows />}
      </StandalonePage>
    );
  }
  const title = newest.title ?? 'Shared conversation';
  const all = data!.pages.flatMap(({ messages }) => messages).toReversed();
  const entries: Entry[] = [
    ...entriesOf(all.filter(({ turn }) => turn !== null)),
    ...all.filter(({ turn }) => turn === null).map(userEntry),
  ];
  return (
    <main className="shared" id="main">
      <title>{`${title} · Signalbox`}</title>
      <header>
        <div>
          <h1>
            <PlainText text={title} />
          </h1>
          <p className="quiet small">
            Read-only · link expires <Time at={newest.expiresAt} />
          </p>
        </div>
        <Status value={newest.status} />
      </header>
      {hasNextPage && (
        <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          Show earlier
        </Button>
      )}
      {entries.length === 0 && <p className="quiet">No messages yet.</p>}
      <ol className="entries">
        {entries.map((entry, index) => (
          <li key={entry.key} data-kind={entry.kind}>
            <SharedEntry entry={entry} token={token} isFirst={(entries[index - 1]?.kind ?? 'user') === 'user'} />
          </li>
        ))}
      </ol>
    </main>
  );
}

function SharedEntry({ entry, token, isFirst }: { entry: Entry; token: string; isFirst: boolean }) {
  if (entry.kind === 'call') return <SharedCall call={entry} token={token} />;
  if (entry.kind !== 'user') {
    return (
      <div className="text">
        {isFirst && (
          <p className="speaker">
            <Bot aria-hidden="true" /> Agent
          </p>
        )}
        <MessageText text={entry.text} />
      </div>
    );
  }
  return (
    <div className="said">
      <p className="speaker">
        <UserRound aria-hidden="true" /> User <Time at={entry.createdAt} />
      </p>
      {entry.files.map((file) => (
        <SharedFile file={file} token={token} key={file.fileId} />
      ))}
      <MessageText text={entry.text} />
    </div>
  );
}

function SharedCall({ call, token }: { call: CallEntry; token: string }) {
  const [isOpen, setOpen] = useState(false);
  const { input, isEdited, modelInput, error, files } = call;
  return (
    <div className="call">
      <CallLine call={call} isOpen={isOpen} onToggle={() => setOpen(!isOpen)}>
        {error !== null && <Badge tone="bad">error</Badge>}
      </CallLine>
      {isOpen && (
        <div className="call-details">
          <Fold label="Input" value={isEdited ? modelInput : input} open>
            <ValueView value={isEdited ? modelInput : input} />
          </Fold>
          <CallResult call={call} />
        </div>
      )}
      {files.map((file) => (
        <SharedFile file={file} token={token} key={file.fileId} />
      ))}
    </div>
  );
}

function SharedFile({ file, token }: { file: FilePart; token: string }) {
  return (
    <figure className="file">
      <FileCaption file={file} read={() => readShared(token, file.fileId)} />
    </figure>
  );
}

async function readShared(token: string, fileId: string): Promise<ArrayBuffer> {
  const response = await fetch('/console/api/shares/file', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token, fileId }),
  });
  if (!response.ok) throw new Error('The file can’t be downloaded.');
  return await response.arrayBuffer();
}
