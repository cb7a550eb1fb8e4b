import type { Approval } from '@signalbox/client';
import { ChevronDown, ChevronRight } from 'lucide-react';
import { useEffect, useId, useRef, useState } from 'react';
import { toolTitle } from '../../lib/text-format.ts';
import { Button } from '../../ui/button.tsx';
import { PlainText } from '../../ui/text.tsx';
import { AgentName } from './approval-source.tsx';
import type { Bulk } from './bulk.ts';
import type { ApprovalGroup } from './groups.ts';
import { InboxRow } from './inbox-row.tsx';

/** The calls of one tool by one agent. One of them alone has no heading. */
export function InboxGroup({
  group: { name, agentId, approvals },
  bulk,
  selected,
  isPending,
  canDecide,
  onSelect,
  onAsk,
}: {
  group: ApprovalGroup;
  bulk: Bulk;
  selected: ReadonlySet<string>;
  isPending: (approval: Approval) => boolean;
  canDecide: (approval: Approval) => boolean;
  onSelect: (ids: readonly string[], isSelected: boolean) => void;
  onAsk: (approvals: readonly Approval[], decision: 'approved' | 'denied') => void;
}) {
  const [isOpen, setOpen] = useState(true);
  const id = useId();
  const pending = approvals.filter(isPending);
  const mine = approvals.filter(canDecide);
  const chosen = mine.filter(({ operationId }) => selected.has(operationId));
  const hasHeading = approvals.length > 1;
  return (
    <section className="approval-group" data-alone={!hasHeading} {...(hasHeading && { 'aria-labelledby': id })}>
      {hasHeading && (
        <header>
          <SelectAll
            label={`Select all of ${name}`}
            isDisabled={mine.length === 0}
            chosen={chosen.length}
            of={mine.length}
            onChange={(isSelected) =>
              onSelect(
                mine.map(({ operationId }) => operationId),
                isSelected,
              )
            }
          />
          <button type="button" className="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? <ChevronDown aria-hidden="true" /> : <ChevronRight aria-hidden="true" />}
            <h2 id={id}>
              <PlainText text={toolTitle(name)} />
            </h2>
            <span className="quiet agent">
              <AgentName agentId={agentId} />
            </span>
            <span className="count">{pending.length}</span>
          </button>
          {mine.length > 1 && (
            <span className="row group-actions">
              <Button small onClick={() => onAsk(mine, 'approved')}>
                <span>
                  Approve {mine.length} of {name}…
                </span>
              </Button>
              <Button small look="bare" onClick={() => onAsk(mine, 'denied')}>
                Deny {mine.length}…
              </Button>
            </span>
          )}
        </header>
      )}
      {isOpen &&
        approvals.map((approval) => {
          const { operationId } = approval;
          return (
            <InboxRow
              key={operationId}
              approval={approval}
              isPending={isPending(approval)}
              decidedAs={bulk.decided.get(operationId)}
              refused={bulk.refused.get(operationId)}
              canDecide={canDecide(approval)}
              isSelected={selected.has(operationId) && canDecide(approval)}
              isGrouped={hasHeading}
              onSelect={(isSelected) => onSelect([operationId], isSelected)}
            />
          );
        })}
    </section>
  );
}

function SelectAll({
  label,
  isDisabled,
  chosen,
  of,
  onChange,
}: {
  label: string;
  isDisabled: boolean;
  chosen: number;
  of: number;
  onChange: (isSelected: boolean) => void;
}) {
  const box = useRef<HTMLInputElement>(null);
  const isSome = chosen > 0 && chosen < of;
  useEffect(() => {
    box.current!.indeterminate = isSome;
  }, [isSome]);
  return (
    <label className="pick">
      <input
        type="checkbox"
        ref={box}
        aria-label={label}
        disabled={isDisabled}
        checked={of > 0 && chosen === of}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
    </label>
  );
}
