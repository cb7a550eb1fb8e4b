// Commands with which the operator manages people on the host. The operator can admit anyone, as they also could with SQL.
import { type CanDecide, type Role, roles } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Config } from '../config/config.ts';
import type { Db } from '../db/db.ts';
import { type EventSource, systemSource } from '../events/record.ts';
import { ApiError } from '../lib/api-error.ts';
import { systemClock } from '../lib/clock.ts';
import { formatId, parseId } from '../lib/ids.ts';
import { allOrganizations } from '../organizations/organizations.ts';
import { readConsoleUrl } from '../people/console-url.ts';
import { createSetupToken, insertInvitation, insertReset, linkOf } from '../people/invitations.ts';
import { deleteMember, lockMember } from '../people/members.ts';
import { type Access, accessColumns, viewCanDecide } from '../people/memberships/can-decide.ts';
import { lockOrganization } from '../people/memberships/memberships.ts';
import { choose, linesOf, OperatorError, withInstallation } from './operator.ts';
import { explainStart } from './start-error.ts';

export interface MemberOnHost {
  userId: string;
  name: string;
  email: string;
  role: Role;
  canDecide: CanDecide | null;
  lastSignedInAt: string | null;
}

interface Wish {
  /** Can be left out if there is only one. */
  organization?: string | undefined;
}

/** All members of an organization, ordered by email. Throws `OperatorError` or `StartError`, like all functions here. */
export function listUsersOnHost(config: Config, wish: Wish): Promise<MemberOnHost[]> {
  return onHost(config, wish, async (db, { organizationId }) =>
    (await membersOf(db, organizationId)).map(memberFromRow),
  );
}

/** An invitation link for a new person, valid once within 7 days. */
export function inviteOnHost(
  config: Config,
  wish: Wish & {
    role?: string | undefined;
    email?: string | undefined;
    name?: string | undefined;
    canDecide?: { agents?: string[]; environments?: string[] } | undefined;
  },
): Promise<string> {
  const role = roles.find((one) => one === wish.role);
  if (!role) throw new OperatorError(`--role must be one of ${roles.join(', ')}`);
  const { email, name, canDecide } = wish;
  if (email !== undefined && !/^[^\s@]+@[^\s@]+\.[^\s@.]+$/.test(email))
    throw new OperatorError('--email must be an email address');
  if (canDecide?.agents?.some((id) => parseId('agt', id) === undefined))
    throw new OperatorError('--decides-agents must be ids of agents, agt_…');
  return onHost(config, wish, async (db, source) => {
    const { token } = await db.transaction((tx) =>
      insertInvitation(tx, source, systemClock.now(), {
        role,
        ...(canDecide && { canDecide }),
        ...(email !== undefined && { email }),
        ...(name !== undefined && { name }),
      }),
    );
    return linkOf(await publicUrlOf(config, db), token);
  });
}

/** A password reset link, valid once within 24 hours; also for people in several organizations. */
export function resetPasswordOnHost(config: Config, wish: Wish & { user?: string | undefined }): Promise<string> {
  return onHost(config, wish, async (db, source) => {
    const { userId } = await findMember(db, source.organizationId, wish.user);
    const { token } = await db.transaction((tx) => insertReset(tx, source, systemClock.now(), userId, null));
    return linkOf(await publicUrlOf(config, db), token);
  });
}

/** Removes a person immediately. */
export function removeUserOnHost(config: Config, wish: Wish & { user?: string | undefined }): Promise<MemberOnHost> {
  return onHost(config, wish, async (db, source) => {
    const member = await findMember(db, source.organizationId, wish.user);
    await db.transaction(async (tx) => {
      await lockOrganization(tx, source.organizationId);
      // Read under the lock: the role may have changed since it was read above.
      const current = await lockMember(tx, source.organizationId, member.userId);
      await deleteMember(tx, source, systemClock.now(), current);
    });
    return memberFromRow(member);
  });
}

/** A new setup link, like the one that a start prints; all earlier ones become void. */
export function setupLinkOnHost(config: Config, wish: Wish): Promise<string> {
  return onHost(config, wish, async (db, { organizationId }) => {
    const token = await createSetupToken({ db, organizationId }, systemClock.now(), { voidsOlder: true });
    if (token === undefined) {
      throw new OperatorError('The organization has people already. Invite others with `signalbox users invite`.');
    }
    return linkOf(await publicUrlOf(config, db), token);
  });
}

async function onHost<T>(config: Config, wish: Wish, act: (db: Db, source: EventSource) => Promise<T>): Promise<T> {
  try {
    return await withInstallation(config, async (db) => {
      const { organizationId } = choose(await allOrganizations(db), wish.organization);
      return act(db, systemSource(organizationId));
    });
  } catch (error) {
    if (error instanceof ApiError) throw new OperatorError(linesOf(error));
    throw explainStart(error, config);
  }
}

interface Row extends Access {
  userId: string;
  name: string;
  email: string;
  lastSignedInAt: Date | null;
}

function membersOf(db: Db, organizationId: string): Promise<Row[]> {
  return db.query<Row>(sql`
    select m.user_id as "userId", u.name, u.email, ${accessColumns('m')}, m.last_signed_in_at as "lastSignedInAt"
    from members m join users u on u.id = m.user_id
    where m.organization_id = ${organizationId} order by u.email`);
}

function memberFromRow(row: Row): MemberOnHost {
  return {
    userId: formatId('usr', row.userId),
    name: row.name,
    email: row.email,
    role: row.role,
    canDecide: viewCanDecide(row),
    lastSignedInAt: row.lastSignedInAt?.toISOString() ?? null,
  };
}

/** By email or id. */
async function findMember(db: Db, organizationId: string, wanted: string | undefined): Promise<Row> {
  if (wanted === undefined) throw new OperatorError('--user is required: an email address, or an id usr_…');
  const members = await membersOf(db, organizationId);
  const found = members.find(
    ({ userId, email }) => email === wanted.toLowerCase() || formatId('usr', userId) === wanted,
  );
  if (!found) throw new OperatorError(`There is no user ${wanted} in this organization. See: signalbox users list`);
  return found;
}

/** The option, or else the address that the service announced when it last started to serve the console. */
async function publicUrlOf({ publicUrl, port }: Config, db: Db): Promise<URL> {
  return publicUrl ?? (await readConsoleUrl(db)) ?? new URL(`http://localhost:${port}`);
}
