// One decision on many approvals: shown at once, sent in requests of at most a hundred, and taken back for those that are refused.
import { type Approval, type ResolveApprovals, SignalboxError } from '@signalbox/client';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useOrganization } from '../../data/organization.tsx';
import { counted } from '../../lib/text-format.ts';
import { useToast } from '../../ui/toast.tsx';

export type BulkDecision = Pick<ResolveApprovals, 'decision' | 'reason'>;

export interface Bulk {
  /** Approvals that have been decided here: as sent, then as the service has them. */
  readonly decided: ReadonlyMap<string, Approval['status']>;
  /** Why the service refused a decision on an approval. */
  readonly refused: ReadonlyMap<string, string>;
  readonly isSending: boolean;
  send(approvals: readonly Approval[], decision: BulkDecision): Promise<void>;
}

// As many as one request can decide.
const AT_ONCE = 100;

export function useBulk(): Bulk {
  const { client, organizationId } = useOrganization();
  const queries = useQueryClient();
  const toast = useToast();
  const [decided, setDecided] = useState<ReadonlyMap<string, Approval['status']>>(new Map());
  const [refused, setRefused] = useState<ReadonlyMap<string, string>>(new Map());
  const [isSending, setSending] = useState(false);

  async function send(approvals: readonly Approval[], decision: BulkDecision): Promise<void> {
    const ids = approvals.map(({ operationId }) => operationId);
    const left = new Set(ids);
    const problems = new Map<string, string>();
    setSending(true);
    setRefused(new Map());
    setDecided((before) => changed(before, ids, () => decision.decision));
    try {
      for (let at = 0; at < ids.length; at += AT_ONCE) {
        const batch = ids.slice(at, at + AT_ONCE);
        const outcomes = await client.approvals.resolveMany({ operationIds: batch, ...decision });
        for (const { operationId, error } of outcomes) {
          left.delete(operationId);
          if (error) problems.set(operationId, error.detail);
        }
        const statuses = new Map(outcomes.map(({ operationId, status }) => [operationId, status ?? undefined]));
        setDecided((before) => changed(before, batch, (id) => statuses.get(id)));
      }
    } catch (problem) {
      // What was sent in this batch may have been decided: the list shows it when it is read again.
      const why = problem instanceof SignalboxError ? problem.message : 'The service did not respond.';
      for (const id of left) problems.set(id, `Not decided: ${why}`);
      setDecided((before) => changed(before, [...left], () => undefined));
    } finally {
      setRefused(problems);
      setSending(false);
      for (const noun of ['approvals', 'sessions', 'overview'])
        void queries.invalidateQueries({ queryKey: [organizationId, noun] });
    }
    const count = ids.length - problems.size;
    const what = decision.decision === 'approved' ? 'Approved' : 'Denied';
    const others = problems.size > 0 ? `; ${problems.size} refused` : '';
    toast(`${what} ${counted(count, 'call')}${others}`);
  }

  return { decided, refused, isSending, send };
}

/** A status of undefined, or of one that is still pending, takes the approval back. */
function changed(
  before: ReadonlyMap<string, Approval['status']>,
  ids: readonly string[],
  statusOf: (id: string) => Approval['status'] | undefined,
): ReadonlyMap<string, Approval['status']> {
  const after = new Map(before);
  for (const id of ids) {
    const status = statusOf(id);
    if (status === undefined || status === 'pending') after.delete(id);
    else after.set(id, status);
  }
  return after;
}
