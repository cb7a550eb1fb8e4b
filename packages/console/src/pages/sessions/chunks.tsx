// The raw journal: every chunk, in order. Only visible rows are rendered, so that a hundred thousand chunks scroll.
import type { Chunk, ChunkType, Session } from '@signalbox/client';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef, useState } from 'react';
import { useOrganization } from '../../organization.tsx';
import { counted } from '../../text-format.ts';
import { Button } from '../../ui/button.tsx';
import { Json } from '../../ui/copy.tsx';
import { Select, TextField } from '../../ui/field.tsx';
import { Loading } from '../../ui/list.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { PlainText } from '../../ui/text.tsx';
import { ExactTime } from '../../ui/time.tsx';
import { ChunkList } from './chunk-list.ts';
import { isBefore } from './follow.ts';

const types: readonly ChunkType[] = [
  'step.started',
  'message.started',
  'message.chunk',
  'reasoning.chunk',
  'tool.input.chunk',
  'message.reset',
  'tool.call',
  'tool.result',
  'file.created',
  'approval.requested',
  'approval.decided',
  'approval.resolved',
  'session.status',
  'turn.completed',
  'context.compacted',
];
const ROW_PX = 38;
const AHEAD_ROWS = 100;

export function Chunks({ session, liveCursor }: { session: Session; liveCursor: string | null }) {
  const [type, setType] = useState<ChunkType | ''>('');
  const [turn, setTurn] = useState('');
  const fromTurn = /^\d+$/.test(turn) && Number(turn) <= session.turn ? Number(turn) : 0;
  return (
    <div className="stack">
      <div className="filters">
        <Select
          label="Type"
          value={type}
          onChange={(event) => setType(event.currentTarget.value as ChunkType | '')}
          options={[{ value: '', label: 'All' }, ...types.map((value) => ({ value, label: value }))]}
        />
        <TextField
          label="From turn"
          inputMode="numeric"
          value={turn}
          placeholder="first"
          onChange={(event) => setTurn(event.currentTarget.value)}
          error={turn !== '' && fromTurn !== Number(turn) ? `Enter a number up to ${session.turn}.` : undefined}
        />
      </div>
      <Rows session={session} type={type} fromTurn={fromTurn} liveCursor={liveCursor} key={`${type} ${fromTurn}`} />
    </div>
  );
}

function Rows({
  session,
  type,
  fromTurn,
  liveCursor,
}: {
  session: Session;
  type: ChunkType | '';
  fromTurn: number;
  liveCursor: string | null;
}) {
  const { client } = useOrganization();
  const { sessionId } = session;
  const [, redraw] = useState({});
  const [list] = useState(() => new ChunkList(client, sessionId, { type, fromTurn }, () => redraw({})));
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const scroller = useRef<HTMLElement>(null);
  const { rows, isAtEnd, error } = list;
  const [isSeeking, setSeeking] = useState(false);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    getItemKey: (index) => idOf(rows[index]!.chunk),
    overscan: 12,
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;

  useEffect(() => () => list.stop(), [list]);
  // Loads the next page before its rows are visible, and new chunks at the end.
  useEffect(() => {
    if (error !== undefined) return;
    if (!isAtEnd && last >= rows.length - AHEAD_ROWS) void list.more();
    else if (isAtEnd && isBefore(list.cursor, liveCursor)) list.soon();
  }, [list, last, rows.length, isAtEnd, error, liveCursor]);

  async function toEnd() {
    setSeeking(true);
    await list.readAll();
    setSeeking(false);
    virtual.scrollToIndex(list.rows.length - 1, { align: 'end' });
    scroller.current?.focus();
  }
  function toggle(id: string) {
    const next = new Set(open);
    if (!next.delete(id)) next.add(id);
    setOpen(next);
  }

  if (rows.length === 0) {
    if (error) return <ErrorNotice error={error} retry={() => void list.more()} />;
    return isAtEnd ? <p className="quiet">No matching chunks.</p> : <Loading />;
  }
  return (
    <>
      <div className="row apart">
        <p className="quiet small number" role="status">
          {counted(rows.length, 'chunk')}
          {isAtEnd ? '' : ' loaded, more available'}
        </p>
        <Button small busy={isSeeking} onClick={() => void toEnd()}>
          Jump to end
        </Button>
      </div>
      {error !== undefined && <ErrorNotice error={error} retry={() => void list.more()} />}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling element must be reachable by keyboard */}
      <section className="chunks" ref={scroller} tabIndex={0} aria-label="Chunks">
        <ol style={{ height: virtual.getTotalSize() }}>
          {items.map(({ key, index, start }) => {
            const { chunk, timestamp } = rows[index]!;
            const id = idOf(chunk);
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
                    <PlainText text={gistOf(chunk)} />
                  </span>
                </button>
                {open.has(id) && (
                  <div className="within stack tight">
                    <p className="small quiet">
                      <ExactTime at={timestamp} />
                    </p>
                    <Json value={chunk} />
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

function idOf({ turn, seq }: Chunk): string {
  return `${turn}:${seq}`;
}

// Only one line is visible.
const GIST_CHARACTERS = 200;

function gistOf(chunk: Chunk): string {
  if (chunk.type === 'message.chunk') return JSON.stringify(chunk.delta.slice(0, GIST_CHARACTERS));
  const { type: _, turn: __, seq: ___, ...rest } = chunk;
  return JSON.stringify(rest).slice(0, GIST_CHARACTERS);
}
