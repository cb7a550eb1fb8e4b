import type { EventFilters, Signalbox } from '@signalbox/client';
import { useEffect, useRef, useState } from 'react';
import { useOrganization } from '../../organization.tsx';
import { Button } from '../../ui/button.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { useToast } from '../../ui/toast.tsx';

type Format = 'jsonl' | 'csv';

// The browser keeps large Blobs on disk; only the piece being collected is in memory.
const PIECE_BYTES = 4 * 1024 * 1024;

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
  const reader = (await client.events.download(params, { signal })).getReader();
  const whole: Blob[] = [];
  let piece: Uint8Array<ArrayBuffer>[] = [];
  let inPiece = 0;
  let bytes = 0;
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    piece.push(next.value);
    inPiece += next.value.length;
    bytes += next.value.length;
    if (inPiece < PIECE_BYTES) continue;
    whole.push(new Blob(piece));
    piece = [];
    inPiece = 0;
    onBytes(bytes);
  }
  signal.throwIfAborted();
  const type = params.format === 'csv' ? 'text/csv' : 'application/jsonl';
  return new Blob([...whole, ...piece], { type });
}

function save(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser has started to read it by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
