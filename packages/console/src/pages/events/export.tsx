import type { EventFilters, Signalbox } from '@signalbox/client';
import { useEffect, useRef, useState } from 'react';
import { useOrganization } from '../../organization.tsx';
import { blobOf, save } from '../../save-file.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { useToast } from '../../ui/toast.tsx';

type Format = 'jsonl' | 'csv';

/** Downloads the filtered events as a file. */
export function ExportEvents({ filters }: { filters: EventFilters }) {
  const { client } = useOrganization();
  const toast = useToast();
  const [bytes, setBytes] = useState<number>();
  const [error, setError] = useState<unknown>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  async function start(format: Format) {
    const over = new AbortController();
    running.current = over;
    setError(undefined);
    setBytes(0);
    try {
      save(await download(client, { ...filters, format }, over.signal, setBytes), `events.${format}`);
      toast('Exported');
    } catch (problem) {
      if (!over.signal.aborted) setError(problem);
    } finally {
      setBytes(undefined);
    }
  }
  return (
    <>
      <div className="row">
        {bytes === undefined ? (
          <>
            <Button small onClick={() => void start('jsonl')}>
              Export JSON Lines
            </Button>
            <Button small onClick={() => void start('csv')}>
              Export CSV
            </Button>
            <span className="quiet small">{Object.keys(filters).length > 0 ? 'Matching events.' : 'All events.'}</span>
          </>
        ) : (
          <>
            <span role="status">
              <span className="spinner" aria-hidden="true" /> Exporting … {(bytes / 1e6).toFixed(1)} MB
            </span>
            <Button small onClick={() => running.current?.abort()}>
              Stop
            </Button>
          </>
        )}
      </div>
      {error !== undefined && <ErrorNotice error={error} />}
    </>
  );
}

async function download(
  client: Signalbox,
  params: EventFilters & { format: Format },
  signal: AbortSignal,
  onBytes: (bytes: number) => void,
): Promise<Blob> {
  const type = params.format === 'csv' ? 'text/csv' : 'application/jsonl';
  return blobOf(await client.events.download(params, { signal }), type, signal, onBytes);
}
