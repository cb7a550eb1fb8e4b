// Which node sends for which subscription. Every node computes it from the ids of the nodes that live and deliver: the one with the
// highest hash of both ids (rendezvous hashing). So each has about the same share, and a node that joins or leaves moves no
// subscription but those that it gains or loses.
//
// It decides who claims a free subscription and who gives one up. Two nodes that see other nodes may disagree for a moment; the
// epoch decides then, as ever.
import { createHash } from 'node:crypto';
import sql from 'sql-template-tag';
import type { Db } from '../../db/db.ts';

/** The nodes that deliver, this one included unless its lease is over. */
export async function deliveryNodes(db: Db, nodeId: string): Promise<string[]> {
  const read = () =>
    db.query<{ id: string }>(sql`
      select w.node_id as id from nodes w where w.delivers and w.lease_expires_at > now() order by w.node_id`);
  let rows = await read();
  if (!rows.some(({ id }) => id === nodeId)) {
    await db.execute(sql`update nodes set delivers = true where node_id = ${nodeId}`);
    rows = await read();
  }
  return rows.map(({ id }) => id);
}

/** Its subscriptions become the share of others at once: a node that stops may live on for as long as its turns take. */
export async function leaveShares(db: Db, nodeId: string): Promise<void> {
  await db.execute(sql`update nodes set delivers = false where node_id = ${nodeId}`);
}

/** Undefined if there is no node. */
export function nodeFor(webhookSubscriptionId: string, nodes: readonly string[]): string | undefined {
  let best: { node: string; score: string } | undefined;
  for (const node of nodes) {
    const score = createHash('sha256').update(`${node} ${webhookSubscriptionId}`).digest('hex');
    if (!best || score > best.score) best = { node, score };
  }
  return best?.node;
}
