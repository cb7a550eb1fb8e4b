// Why nothing can be sent for a subscription, whatever its receiver would respond: problems that the operator or the owner of the
// url has to fix. Computed when a subscription is shown, by the node that shows it.
import { testReceiverUrl, type WebhookBlock } from '@signalbox/contract';
import sql, { empty, type Sql } from 'sql-template-tag';
import { UrlNotAllowed } from '../../egress/errors.ts';
import type { Context } from '../../lib/context.ts';
import { CannotOpen } from '../../vault/vault.ts';
import { openSecret, type SubscriptionSecret } from './signing-secret.ts';

/** What decides whether anything can be sent. */
export interface Blockable {
  url: string;
  hasDeliveryNode: boolean;
  lastError: string | null;
}

export interface BlockableSubscription extends Blockable, Omit<SubscriptionSecret, 'organizationId'> {
  sealedSecret: Buffer;
  previousSealedSecret: Buffer | null;
}

const reasons: Record<WebhookBlock, string> = {
  no_delivery_node: 'No node with the role `delivery` is alive. Start one; what waits is then sent.',
  secret_unreadable:
    "The signing secret cannot be opened with this installation's master keys. Add the key that sealed it to SIGNALBOX_MASTER_KEY, or rotate the secret with a grace period of 0 seconds.",
  url_not_allowed:
    'The url, or an address that its host stands for, is not allowed. Change the url, or ask the operator to list the address in SIGNALBOX_EGRESS_ALLOW.',
};

/** A column for a subscription's row: whether any node has the role `delivery`. */
export function hasDeliveryNode(): Sql {
  return sql`exists (select 1 from nodes n where n.delivers and n.lease_expires_at > now()) as "hasDeliveryNode"`;
}

/**
 * The problem to fix first, if there are several; nulls if attempts are possible. `open` opens every secret, and throws `CannotOpen`, as
 * the sending node would.
 */
export function blockOf(
  ctx: Pick<Context, 'egress'>,
  of: Blockable,
  open: () => void,
): { blockedBy: WebhookBlock | null; reason: string | null } {
  const blockedBy = !of.hasDeliveryNode
    ? 'no_delivery_node'
    : !isReadable(open)
      ? 'secret_unreadable'
      : !isAllowed(ctx, of)
        ? 'url_not_allowed'
        : null;
  return { blockedBy, reason: blockedBy && reasons[blockedBy] };
}

// Limits the work of a request; opening a secret takes a few microseconds.
const MAX_COUNTED = 1_000;

/** How many of the thousand newest enabled subscriptions, of the organization or of one environment, are blocked. */
export async function countBlocked(
  ctx: Pick<Context, 'db' | 'organizationId' | 'vault' | 'egress'>,
  environment: string | undefined,
): Promise<number> {
  const rows = await ctx.db.query<BlockableSubscription>(sql`
    select w.webhook_subscription_id as "webhookSubscriptionId", w.environment, w.url, w.sealed_secret as "sealedSecret",
      w.previous_sealed_secret as "previousSealedSecret", w.secret_version as "secretVersion", w.last_error as "lastError",
      ${hasDeliveryNode()}
    from webhook_subscriptions w
    where w.organization_id = ${ctx.organizationId} and w.status = 'enabled'
      ${environment === undefined ? empty : sql`and w.environment = ${environment}`}
    order by w.webhook_subscription_id desc limit ${MAX_COUNTED}`);
  return rows.filter((row) => blockOf(ctx, row, () => openSecrets(ctx, row)).blockedBy !== null).length;
}

/** Opens the secrets of a subscription. Throws `CannotOpen`. */
export function openSecrets(
  { organizationId, vault }: Pick<Context, 'organizationId' | 'vault'>,
  of: BlockableSubscription,
): void {
  openSecret(vault, { organizationId, ...of }, of.sealedSecret);
  if (of.previousSealedSecret) {
    openSecret(vault, { organizationId, ...of, secretVersion: of.secretVersion - 1 }, of.previousSealedSecret);
  }
}

function isReadable(open: () => void): boolean {
  try {
    open();
    return true;
  } catch (error) {
    if (!(error instanceof CannotOpen)) throw error;
    return false;
  }
}

/** Does not resolve the host name: what its addresses are is taken from the last attempt. */
function isAllowed({ egress }: Pick<Context, 'egress'>, { url, lastError }: Blockable): boolean {
  if (url === testReceiverUrl) return true;
  if (lastError === 'not_allowed') return false;
  try {
    egress.check(url);
    return true;
  } catch (error) {
    if (!(error instanceof UrlNotAllowed)) throw error;
    return false;
  }
}
