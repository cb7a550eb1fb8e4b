// Where older messages became a summary for the model: from which turn, what it cost, and the summary.
import type { SessionTurn } from '@signalbox/client';
import { Dollars } from '../../ui/dollars.tsx';
import { PlainText } from '../../ui/text.tsx';
import { Time } from '../../ui/time.tsx';
import { number } from './session-text.ts';

export function Compactions({ turns }: { turns: readonly (SessionTurn | undefined)[] }) {
  const operations = turns.flatMap((turn) => turn?.operations ?? []);
  return operations.map(({ operationId, compaction, usage, endedAt, name }) => {
    if (!compaction) return null;
    const { untilTurn, tokensBefore, tokensAfter, summary } = compaction;
    return (
      <li className="quiet small" data-kind="compaction" key={operationId}>
        <details>
          <summary>
            Messages up to turn {untilTurn} are {summary === '' ? 'left out' : 'summarized'} for the model:{' '}
            {number(tokensBefore)} → {number(tokensAfter)} tokens
            {usage && usage.costUsd !== null && (
              <>
                , <Dollars usd={usage.costUsd} />
              </>
            )}{' '}
            {endedAt && <Time at={endedAt} />}
          </summary>
          {summary === '' ? (
            <p>There is no summary. The transcript keeps the messages.</p>
          ) : (
            <>
              <p>
                By <PlainText text={name} />. The transcript keeps the messages.
              </p>
              <PlainText text={summary} />
            </>
          )}
        </details>
      </li>
    );
  });
}
