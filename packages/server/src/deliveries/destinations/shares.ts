// Which node should send for which subscription, and to which organization's destinations. Every node computes it from the ids of the live nodes with the role `delivery`: the
// one with the highest hash of node id and subscription id (rendezvous hashing). Every node gets about the same share, and when a
// node joins or leaves, only the subscriptions that it gains or loses move.
//
// This decides which node claims an unassigned subscription and which one releases it. Two nodes that see different sets of nodes may
// disagree for a few seconds; the epoch of the subscription decides then.
import { createHash } from 'node:crypto';
import sql, { raw } from 'sql-template-tag';
import type { Db } from '../../db/db.ts';

/** What a node has a share of. Nodes of earlier releases don't send to destinations. */
type Share = 'delivers' | 'sends_destinations';

/** The ids of the live nodes that have a share, sorted. Includes this node unless its lease has expired. */
export async function deliveryNodes(db: Db, nodeId: string, share: Share = 'delivers'): Promise<string[]> {
  const column = raw(share);
  const read = () =>
    db.query<{ id: string }>(sql`
      select w.node_id as id from nodes w where w.${column} and w.lease_expires_at > now() order by w.node_id`);
  let rows = await read();
  if (!rows.some(({ id }) => id === nodeId)) {
    await db.execute(sql`update nodes set ${column} = true where node_id = ${nodeId}`);
    rows = await read();
  }
  return rows.map(({ id }) => id);
}

/** Gives this node's share to the others at once: a node that stops may keep its lease until its turns have ended. */
export async function leaveShares(db: Db, nodeId: string, share: Share = 'delivers'): Promise<void> {
  await db.execute(sql`update nodes set ${raw(share)} = false where node_id = ${nodeId}`);
}

/** The node whose share the subscription or organization is; undefined if there are no nodes. */
export function nodeFor(id: string, nodes: readonly string[]): string | undefined {
  let best: { node: string; score: string } | undefined;
  for (const node of nodes) {
    const score = createHash('sha256').update(`${node} ${id}`).digest('hex');
    if (!best || score > best.score) best = { node, score };
  }
  return best?.node;
}
