// The raw journal: every chunk, in order. Only visible rows are rendered, so that a hundred thousand chunks scroll.
import type { ChunkType, Session } from '@signalbox/client';
import { isAfter } from '@signalbox/client/conversation';
import { useSearch } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef, useState } from 'react';
import { useOrganization } from '../../data/organization.tsx';
import { useChangeSearch } from '../../lib/change-search.ts';
import { counted } from '../../lib/text-format.ts';
import { Button } from '../../ui/button.tsx';
import { CopyButton, Json } from '../../ui/copy.tsx';
import { FilterBar } from '../../ui/filter-bar.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Segmented } from '../../ui/segmented.tsx';
import { SkeletonRows } from '../../ui/skeleton.tsx';
import { LongText, PlainText } from '../../ui/text.tsx';
import { ExactTime } from '../../ui/time.tsx';
import { ChunkList } from './chunk-list.ts';
import { type ChunkRow, mergeDeltas, rowOf } from './chunk-rows.ts';
import { chunkTypes, sessionSearch } from './search-params.ts';

const ROW_PX = 28;
const AHEAD_ROWS = 100;

export function Chunks({ session, liveCursor }: { session: Session; liveCursor: string | null }) {
  const { type, from, deltas } = sessionSearch(useSearch({ from: '/$organizationId/sessions/$sessionId' }));
  const changeSearch = useChangeSearch<ReturnType<typeof sessionSearch>>();
  const isTurn = (turn: number) => Number.isInteger(turn) && turn > 0 && turn <= session.turn;
  const fromTurn = from !== undefined && isTurn(from) ? from : 0;
  const list = useChunkList(session.sessionId, type, fromTurn);
  const show = (change: ReturnType<typeof sessionSearch>) => changeSearch((before) => ({ ...before, ...change }));
  return (
    <div className="stack tight">
      <FilterBar
        filters={[
          {
            label: 'Type',
            value: type,
            options: chunkTypes.map((value) => ({ value, label: value })),
            onChange: (value) => show({ type: chunkTypes.find((one) => one === value) }),
          },
          {
            label: 'First turn',
            value: fromTurn > 0 ? String(fromTurn) : undefined,
            placeholder: `1 to ${session.turn}`,
            pattern: { test: (text) => isTurn(Number(text)) },
            refusal: `Enter a number from 1 to ${session.turn}.`,
            onChange: (value) => show({ from: value === undefined ? undefined : Number(value) }),
          },
        ]}
      >
        <Segmented
          label="Deltas"
          value={deltas ?? 'merged'}
          options={[
            { value: 'merged', label: 'Merge deltas' },
            { value: 'each', label: 'Every delta' },
          ]}
          onChange={(value) => show({ deltas: value === 'each' ? value : undefined })}
        />
      </FilterBar>
      <Rows
        list={list}
        isMerged={deltas === undefined}
        liveCursor={liveCursor}
        curl={curlOf(session.sessionId, type, fromTurn)}
      />
    </div>
  );
}

function useChunkList(sessionId: string, type: ChunkType | undefined, fromTurn: number): ChunkList {
  const { client } = useOrganization();
  const [, redraw] = useState({});
  const list = useMemo(
    () => new ChunkList(client, sessionId, { type, fromTurn }, () => redraw({})),
    [client, sessionId, type, fromTurn],
  );
  useEffect(() => () => list.stop(), [list]);
  return list;
}

function Rows({
  list,
  isMerged,
  liveCursor,
  curl,
}: {
  list: ChunkList;
  isMerged: boolean;
  liveCursor: string | null;
  curl: string;
}) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const scroller = useRef<HTMLElement>(null);
  const { rows: chunks, isAtEnd, error } = list;
  // The list appends to the same array.
  const rows = useMemo(() => (isMerged ? mergeDeltas(chunks) : chunks.map(rowOf)), [isMerged, chunks, chunks.length]);
  const [isSeeking, setSeeking] = useState(false);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    getItemKey: (index) => rows[index]!.id,
    overscan: 12,
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;

  // Loads the next page before its rows are visible, and new chunks at the end.
  useEffect(() => {
    if (error !== undefined) return;
    if (!isAtEnd && last >= rows.length - AHEAD_ROWS) void list.more();
    else if (isAtEnd && isAfter(liveCursor, list.cursor)) list.soon();
  }, [list, last, rows.length, isAtEnd, error, liveCursor]);

  async function toEnd() {
    setSeeking(true);
    await list.readAll();
    setSeeking(false);
    requestAnimationFrame(() => virtual.scrollToIndex(Number.MAX_SAFE_INTEGER, { align: 'end' }));
    scroller.current?.focus();
  }
  function toggle(id: string) {
    const next = new Set(open);
    if (!next.delete(id)) next.add(id);
    setOpen(next);
  }

  if (rows.length === 0) {
    if (error) return <ErrorNotice error={error} retry={() => list.more()} />;
    return isAtEnd ? <p className="quiet">No matching chunks.</p> : <SkeletonRows />;
  }
  return (
    <>
      <div className="row apart">
        <p className="quiet small number" role="status">
          {counted(chunks.length, 'chunk')}
          {isAtEnd ? '' : ' loaded, more available'}
        </p>
        <span className="row">
          <CopyButton label="Copy as curl" text={curl} />
          <Button small busy={isSeeking} onClick={() => void toEnd()}>
            Jump to end
          </Button>
        </span>
      </div>
      {error !== undefined && <ErrorNotice error={error} retry={() => list.more()} />}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling element must be reachable by keyboard */}
      <section className="chunks" ref={scroller} tabIndex={0} aria-label="Chunks">
        <ol style={{ height: virtual.getTotalSize() }}>
          {items.map(({ key, index, start }) => {
            const row = rows[index]!;
            const { id, chunk, timestamp } = row;
            return (
              <li
                key={key}
                ref={virtual.measureElement}
                data-index={index}
                style={{ translate: `0 ${start}px` }}
                aria-setsize={isAtEnd ? rows.length : -1}
                aria-posinset={index + 1}
              >
                <button type="button" aria-expanded={open.has(id)} onClick={() => toggle(id)}>
                  <span className="quiet number">{id}</span> <strong>{chunk.type}</strong>{' '}
                  <span className="gist">
                    <PlainText text={gistOf(row)} />
                  </span>
                  {row.text !== undefined && row.count > 1 && (
                    <span className="quiet small"> {row.count.toLocaleString('en')} deltas</span>
                  )}
                </button>
                {open.has(id) && (
                  <div className="within stack tight">
                    <p className="small quiet">
                      <ExactTime at={timestamp} />
                    </p>
                    {row.text === undefined || row.count === 1 ? <Json value={chunk} /> : <LongText text={row.text} />}
                  </div>
                )}
              </li>
            );
          })}
        </ol>
      </section>
    </>
  );
}

// Only one line is visible.
const GIST_CHARACTERS = 200;

function gistOf({ chunk, text }: ChunkRow): string {
  if (text !== undefined) return JSON.stringify(text.slice(0, GIST_CHARACTERS));
  const { type: _, turn: __, seq: ___, ...rest } = chunk;
  return JSON.stringify(rest).slice(0, GIST_CHARACTERS);
}

/** The request that returns these chunks, without the key. */
function curlOf(sessionId: string, type: ChunkType | undefined, fromTurn: number): string {
  const query = new URLSearchParams({
    ...(fromTurn > 0 && { cursor: `turn_${fromTurn}:seq_0` }),
    ...(type && { types: type }),
    limit: '1000',
  });
  const url = `${location.origin}/api/v1/sessions/${sessionId}/chunks?${query}`;
  return `curl '${url}' -H "Authorization: Bearer $SIGNALBOX_API_KEY"`;
}
