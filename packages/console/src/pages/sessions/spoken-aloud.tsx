import type { Approval } from '@signalbox/client';
import { useEffect, useRef, useState } from 'react';
import { toolTitle } from '../../lib/text-format.ts';
import { operationIdOf } from './conversation.ts';
import type { Followed } from './follow.ts';

/**
 * For screen readers: each message of the agent when it is complete, and pending approvals. It does not announce what was there
 * before.
 */
export function SpokenAloud({
  entries,
  growing,
  isCaughtUp,
  approvals,
}: Pick<Followed, 'entries' | 'growing' | 'isCaughtUp'> & { approvals: ReadonlyMap<string, Approval> }) {
  const known = useRef<Set<string>>(undefined);
  const newest = useRef(0);
  const [spoken, setSpoken] = useState<{ key: string; text: string }[]>([]);
  useEffect(() => {
    if (!isCaughtUp) return;
    if (!known.current) newest.current = entries.at(-1)?.turn ?? 0;
    const sayable = entries.flatMap((entry) => {
      // Messages of earlier turns are not new.
      if (entry.turn === null || entry.turn < newest.current) return [];
      if (entry.kind === 'text' && !growing.has(entry.key)) return [{ key: entry.key, text: entry.text }];
      const isAsked = entry.kind === 'call' && approvals.get(operationIdOf(entry))?.status === 'pending';
      return isAsked ? [{ key: `${entry.key} asks`, text: `${toolTitle(entry.tool)} is waiting for approval` }] : [];
    });
    const fresh = known.current ? sayable.filter(({ key }) => !known.current!.has(key)) : [];
    known.current ??= new Set();
    for (const { key } of sayable) known.current.add(key);
    if (fresh.length > 0) setSpoken((all) => [...all, ...fresh].slice(-5));
  }, [entries, growing, isCaughtUp, approvals]);
  return (
    <div className="visually-hidden" role="log" aria-label="New messages">
      {spoken.map(({ key, text }) => (
        <p key={key}>{text}</p>
      ))}
    </div>
  );
}
