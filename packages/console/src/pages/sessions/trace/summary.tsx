// What the shown turns add up to, and what the colors of their bars mean.
import type { SessionTurn } from '@signalbox/client';
import { counted } from '../../../lib/text-format.ts';
import { Dollars } from '../../../ui/dollars.tsx';
import { duration } from '../../../ui/time.tsx';
import { number } from '../session-text.ts';
import { workingMs } from '../working.ts';
import type { PieceKind, TraceRow } from './rows.ts';

const MEANING: readonly (readonly [PieceKind, string])[] = [
  ['first', 'until the first token'],
  ['model', 'model'],
  ['summary', 'summary'],
  ['tool', 'tool'],
  ['agent', 'child session'],
  ['wait', 'waiting'],
  ['failed', 'failed'],
];

/** `allTurns`: of the session, of which some may not be loaded. */
export function TraceSummary({ rows, allTurns, now }: { rows: readonly TraceRow[]; allTurns: number; now: number }) {
  const turns = rows.flatMap((row) => (row.type === 'turn' ? [row.turn] : []));
  const kinds = new Set(rows.flatMap((row) => (row.type === 'turn' ? row.pieces.map(({ kind }) => kind) : [])));
  const steps = turns.flatMap(({ operations }) => operations.map(({ kind }) => kind));
  const models = steps.filter((kind) => kind === 'model').length;
  const tools = steps.filter((kind) => kind === 'tool').length;
  const { inputTokens, outputTokens, costUsd } = total(turns);
  const facts = [
    turns.length < allTurns ? `${number(turns.length)} of ${counted(allTurns, 'turn')}` : counted(allTurns, 'turn'),
    counted(models, 'model call'),
    ...(tools > 0 ? [counted(tools, 'tool call')] : []),
    `${duration(workingMs(turns, now))} working`,
    `${number(inputTokens)} → ${number(outputTokens)} tokens`,
  ];
  return (
    <div className="trace-summary quiet">
      <span className="number">
        {facts.join(' · ')}
        {costUsd !== null && (
          <>
            {' '}
            · <Dollars usd={costUsd} as="short" />
          </>
        )}
      </span>
      <ul className="trace-legend" aria-hidden="true">
        {MEANING.filter(([kind]) => kinds.has(kind)).map(([kind, text]) => (
          <li key={kind}>
            <i className="trace-dot" data-kind={kind} /> {text}
          </li>
        ))}
      </ul>
    </div>
  );
}

function total(turns: readonly SessionTurn[]): { inputTokens: number; outputTokens: number; costUsd: number | null } {
  const sum = { inputTokens: 0, outputTokens: 0, costUsd: null as number | null };
  for (const { usage } of turns) {
    sum.inputTokens += usage.inputTokens;
    sum.outputTokens += usage.outputTokens;
    if (usage.costUsd !== null) sum.costUsd = (sum.costUsd ?? 0) + usage.costUsd;
  }
  return sum;
}
