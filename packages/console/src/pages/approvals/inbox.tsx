// The pending approvals, oldest first: a line each, in groups of one tool and agent, to be decided one by one or together.
import type { Approval } from '@signalbox/client';
import { CircleCheckBig, X } from 'lucide-react';
import { useRef, useState } from 'react';
import type { ListQuery } from '../../data/organization.tsx';
import { useOrganization } from '../../data/organization.tsx';
import { counted } from '../../lib/text-format.ts';
import { Button } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty-state.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { SkeletonRows } from '../../ui/skeleton.tsx';
import { TooLong } from '../../ui/too-long.tsx';
import { useBulk } from './bulk.ts';
import { BulkDialog } from './bulk-dialog.tsx';
import { groupsOf } from './groups.ts';
import { InboxGroup } from './inbox-group.tsx';
import { useApprovalShortcuts } from './shortcuts.ts';

type Decision = 'approved' | 'denied';

export function Inbox({
  query,
  isFiltered,
  onClear,
}: {
  query: ListQuery<Approval>;
  isFiltered: boolean;
  /** Undefined if nothing but the environment filters. */
  onClear: (() => void) | undefined;
}) {
  const { mayDecide } = useOrganization();
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const list = useRef<HTMLDivElement>(null);
  // An approval that was shown keeps its place, so that nothing moves while the user clicks or taps.
  const [seen, setSeen] = useState<ReadonlyMap<string, Approval>>(new Map());
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [asked, setAsked] = useState<{ approvals: readonly Approval[]; decision: Decision }>();
  const bulk = useBulk();
  const now = new Map(data?.map((one) => [one.operationId, one]));
  if (data?.some((one) => seen.get(one.operationId) !== one)) setSeen(new Map([...seen, ...now]));
  // Ids sort by time.
  const shown = [...seen.values()].sort((one, other) => (one.operationId < other.operationId ? -1 : 1));
  const isOpen = (one: Approval) => now.has(one.operationId) && !bulk.decided.has(one.operationId);
  const canDecide = (one: Approval) => mayDecide && one.refusal === null && isOpen(one);
  const chosen = shown.filter((one) => selected.has(one.operationId) && canDecide(one));
  const ask = (approvals: readonly Approval[], decision: Decision) => {
    const some = approvals.filter(canDecide);
    if (some.length > 0) setAsked({ approvals: some, decision });
  };
  const select = (ids: readonly string[], isSelected: boolean) =>
    setSelected((before) => {
      const after = new Set(before);
      for (const id of ids) isSelected ? after.add(id) : after.delete(id);
      return after;
    });
  useApprovalShortcuts(list, [
    ...(mayDecide
      ? [
          { keys: 'shift+a', does: 'Approve the selection, then Enter to confirm', run: () => ask(chosen, 'approved') },
          { keys: 'shift+d', does: 'Deny the selection, type a reason, then Enter', run: () => ask(chosen, 'denied') },
        ]
      : []),
  ]);
  if (!data) return error ? <ErrorNotice error={error} retry={() => refetch()} /> : <SkeletonRows />;
  const pending = shown.filter(isOpen).length;
  const decided = shown.length - pending;
  return (
    <div className="stack inbox">
      <p role="status" className={decided > 0 && pending === 0 ? undefined : 'visually-hidden'}>
        {pending === 0 ? 'No pending approvals.' : `${pending}${hasNextPage ? '+' : ''} pending, oldest first.`}
      </p>
      {decided > 0 && (
        <div className="row">
          <Button small onClick={() => setSeen(now)}>
            Hide {counted(decided, 'decided approval')}
          </Button>
        </div>
      )}
      {shown.length === 0 && (
        <div className="data-frame">
          <EmptyState
            icon={CircleCheckBig}
            title="No pending approvals"
            action={onClear && <Button onClick={onClear}>Clear filters</Button>}
            docs={{ label: 'How approvals work', href: '/docs#resolveApproval' }}
          >
            {isFiltered
              ? 'None in this environment or session. Approved and denied calls are in the other lists.'
              : 'Tool calls that need approval wait here until you decide. An agent says in each tool which calls do.'}
          </EmptyState>
        </div>
      )}
      {error && <ErrorNotice error={error} retry={() => refetch()} />}
      {query.reload && <TooLong reload={query.reload} />}
      <div className="approval-groups" ref={list}>
        {groupsOf(shown).map((group) => (
          <InboxGroup
            key={group.key}
            group={group}
            bulk={bulk}
            selected={selected}
            isPending={isOpen}
            canDecide={canDecide}
            onSelect={select}
            onAsk={ask}
          />
        ))}
      </div>
      {hasNextPage && (
        <div className="row">
          <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            Show more
          </Button>
        </div>
      )}
      {chosen.length > 0 && (
        <div className="bulk-bar" role="toolbar" aria-label="Selected approvals">
          <strong>{counted(chosen.length, 'selected', 'selected')}</strong>
          <Button look="primary" busy={bulk.isSending} onClick={() => ask(chosen, 'approved')}>
            Approve {chosen.length}…
          </Button>
          <Button busy={bulk.isSending} onClick={() => ask(chosen, 'denied')}>
            Deny {chosen.length}…
          </Button>
          <Button look="bare" className="icon" aria-label="Clear the selection" onClick={() => setSelected(new Set())}>
            <X aria-hidden="true" />
          </Button>
        </div>
      )}
      {asked && (
        <BulkDialog
          {...asked}
          onClose={() => setAsked(undefined)}
          onConfirm={(decision) => {
            select(
              asked.approvals.map(({ operationId }) => operationId),
              false,
            );
            void bulk.send(asked.approvals, decision);
          }}
        />
      )}
    </div>
  );
}
