// The hash chain of the log, verified by this browser: it does not ask the service whether the chain is intact.
import { type EventCheckpoint, type EventVerification, type Signalbox, verifyEvents } from '@signalbox/client';
import { Link } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { useOrganization } from '../../data/organization.tsx';
import { counted } from '../../lib/text-format.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorNotice, Notice } from '../../ui/notice.tsx';

// How often the progress is drawn.
const DRAW_EVERY_RECORDS = 500;

interface Progress {
  read: number;
  of: number;
}

export function VerifyDialog({ onClose }: { onClose: () => void }) {
  const { client, organizationId } = useOrganization();
  const [progress, setProgress] = useState<Progress>();
  const [result, setResult] = useState<EventVerification>();
  const [error, setError] = useState<unknown>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  const checkpoint = checkpointOf(organizationId);
  async function start() {
    const over = new AbortController();
    running.current = over;
    setResult(undefined);
    setError(undefined);
    setProgress({ read: 0, of: 0 });
    try {
      const found = await verifyEvents(records(client, over.signal, setProgress), { checkpoint });
      if (over.signal.aborted) return;
      setResult(found);
      if (found.ok && found.last) keepCheckpoint(organizationId, found.last);
    } catch (problem) {
      if (!over.signal.aborted) setError(problem);
    } finally {
      setProgress(undefined);
    }
  }
  return (
    <Dialog title="Verify event log" onClose={onClose}>
      <p>
        Each event contains the hash of the previous one. Your browser reads the whole log and recomputes every hash, so
        it finds events that were changed, removed or inserted afterwards.
      </p>
      {!canHash() ? (
        <Notice kind="warn" title="Your browser can’t verify the log here">
          <p>
            The console was opened over http, where browsers don’t allow hashing. Open it over https or on localhost, or
            run <code>signalbox events verify</code>.
          </p>
        </Notice>
      ) : (
        <>
          {checkpoint && !result && !progress && (
            <p className="quiet small">
              Your browser verified the log up to event {checkpoint.sequence.toLocaleString('en')} before. That event
              must not have changed since.
            </p>
          )}
          {progress && (
            <>
              <progress
                className="chain-progress"
                aria-label="Events verified"
                value={progress.read}
                max={progress.of || 1}
              />
              <p className="quiet small" role="status">
                {progress.read.toLocaleString('en')} of {progress.of.toLocaleString('en')} events
              </p>
            </>
          )}
          {result && <Result result={result} />}
          {error !== undefined && <ErrorNotice error={error} />}
        </>
      )}
      <div className="foot">
        <Button onClick={onClose}>{progress ? 'Stop' : 'Close'}</Button>
        {canHash() && (
          <Button look="primary" busy={progress !== undefined} onClick={() => void start()}>
            {result ? 'Verify again' : 'Verify'}
          </Button>
        )}
      </div>
    </Dialog>
  );
}

function Result({ result }: { result: EventVerification }) {
  const { organizationId } = useOrganization();
  if (result.ok) {
    return (
      <Notice kind="good" title="The event log is intact" live>
        <p>
          {result.first && result.last
            ? `Verified ${counted(result.count, 'event')}, ${result.first.sequence.toLocaleString('en')} to ${result.last.sequence.toLocaleString('en')}. None was changed and none is missing.`
            : 'There are no events yet.'}
        </p>
      </Notice>
    );
  }
  const { sequence, eventId, detail, count } = result;
  return (
    <Notice
      kind="bad"
      title={
        sequence === null
          ? 'The event log is not intact'
          : `The event log is not intact at event ${sequence.toLocaleString('en')}`
      }
      live
    >
      <p>{detail}</p>
      <p>
        {counted(count, 'event')} before it {count === 1 ? 'is' : 'are'} intact. Events after it can’t be verified.
        Export the log now, and find out who can write to the database.
      </p>
      {eventId && (
        <p>
          <Link to="/$organizationId/events" params={{ organizationId }} search={{ event: eventId }}>
            {' '}
            Show the event{' '}
          </Link>
        </p>
      )}
    </Notice>
  );
}

/** All events, oldest first. Reports its progress from time to time. */
async function* records(client: Signalbox, signal: AbortSignal, tell: (progress: Progress) => void) {
  const [{ data: last }, { data: first }] = await Promise.all([
    client.events.list({ limit: 1 }, { signal }),
    client.events.list({ limit: 1, order: 'asc' }, { signal }),
  ]);
  const of = last[0] && first[0] ? last[0].sequence - first[0].sequence + 1 : 0;
  let read = 0;
  for await (const event of client.events.export({}, { signal })) {
    yield event;
    read += 1;
    if (read % DRAW_EVERY_RECORDS === 0) tell({ read, of: Math.max(of, read) });
  }
}

/** Web Crypto exists only on https and localhost. */
function canHash(): boolean {
  return (globalThis.crypto as Crypto | undefined)?.subtle !== undefined;
}

const keyOf = (organizationId: string) => `signalbox.verified.${organizationId}`;

function checkpointOf(organizationId: string): EventCheckpoint | undefined {
  try {
    const kept = JSON.parse(localStorage.getItem(keyOf(organizationId)) ?? 'null') as EventCheckpoint | null;
    const isWhole = kept && Number.isSafeInteger(kept.sequence) && /^[0-9a-f]{64}$/.test(kept.hash);
    return isWhole ? { sequence: kept.sequence, hash: kept.hash } : undefined;
  } catch {
    return undefined;
  }
}

function keepCheckpoint(organizationId: string, { sequence, hash }: EventCheckpoint): void {
  localStorage.setItem(keyOf(organizationId), JSON.stringify({ sequence, hash }));
}
