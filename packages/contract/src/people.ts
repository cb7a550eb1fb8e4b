/** Users who sign in to the console, and the links that admit them. */
import {
  EnvironmentName,
  Id,
  ListQuery,
  Name,
  Nullable,
  OneOf,
  Page,
  type Static,
  Strict,
  Timestamp,
  Type,
} from './schema.ts';
import { type Scope, scopesOfPermission } from './scopes.ts';
import { AllowedOrigins } from './tokens.ts';
import { PricesDate } from './usage.ts';

/** A user's role in an organization; each role includes the scopes of the ones before it. */
export const roles = ['viewer', 'approver', 'member', 'admin', 'owner'] as const;
export const Role = OneOf(roles, {
  title: 'Role',
  description:
    '`viewer` reads, `approver` also decides approvals, `member` also changes, `admin` also manages keys, secrets and people, `owner` also adds and removes owners.',
});
export type Role = Static<typeof Role>;

const { read, write, admin } = scopesOfPermission;
/** The scopes of each role. */
export const scopesOfRole: Readonly<Record<Role, ReadonlySet<Scope>>> = {
  viewer: read,
  approver: new Set([...read, 'approvals:decide']),
  member: write,
  admin,
  owner: admin,
};

const limitsOf = (what: string) => ({ minItems: 1, maxItems: 50, uniqueItems: true, description: what });
const agents = Nullable(
  Type.Array(
    Id('agt'),
    limitsOf(
      'The only agents whose approvals they can decide; null: all. A call in a child session belongs to the agent that runs it.',
    ),
  ),
);
const environments = Nullable(
  Type.Array(EnvironmentName, limitsOf('The only environments whose approvals they can decide; null: all.')),
);
const aboutCanDecide =
  'Which approvals the member can decide, within the role and the approvers of the tool. It limits nothing else: they see all approvals.';
export const CanDecide = Type.Object({ agents, environments }, { title: 'CanDecide', description: aboutCanDecide });
export type CanDecide = Static<typeof CanDecide>;
const canDecide = Nullable(CanDecide, { description: 'null: all that the role lets them decide.' });

const SetCanDecide = Strict(
  { agents: Type.Optional(agents), environments: Type.Optional(environments) },
  {
    title: 'SetCanDecide',
    minProperties: 1,
    description: `${aboutCanDecide} A field that is left out stays as it is. Not with the roles admin and owner.`,
  },
);
const setCanDecide = Type.Optional(
  Nullable(SetCanDecide, { description: 'null: all that the role lets them decide.' }),
);

export const Member = Type.Object(
  {
    userId: Id('usr'),
    name: Type.String(),
    email: Type.String(),
    role: Role,
    canDecide,
    joinedAt: Timestamp,
    lastSignedInAt: Nullable(Timestamp, { description: 'Null if the person has not signed in since joining.' }),
  },
  { title: 'Member' },
);
export type Member = Static<typeof Member>;

export const MemberParams = Strict({ userId: Id('usr') });
export const ListMembers = ListQuery({});
export const MemberPage = Page(Member);
export const UpdateMember = Strict(
  { role: Type.Optional(Role), canDecide: setCanDecide },
  { title: 'UpdateMember', minProperties: 1 },
);

/** Longer addresses can't be delivered to (RFC 5321, section 4.5.3.1). */
const longestEmail = 254;
/** The name to sign in with; the service never sends email. */
export const Email = Type.String({
  maxLength: longestEmail,
  pattern: '^[^\\s@]+@[^\\s@]+\\.[^\\s@.]+$',
  'x-expected': 'an email address',
  examples: ['mara@example.com'],
});

export const Invitation = Type.Object(
  {
    invitationId: Id('inv'),
    role: Role,
    canDecide,
    email: Nullable(Type.String(), { description: 'The only email that can accept it; null: any.' }),
    name: Nullable(Type.String()),
    invitedBy: Type.String({ description: 'The name of the person who created it.' }),
    expiresAt: Timestamp,
    createdAt: Timestamp,
  },
  { title: 'Invitation', description: 'An invitation link that has not been used yet.' },
);
export type Invitation = Static<typeof Invitation>;

export const InvitationParams = Strict({ invitationId: Id('inv') });
export const ListInvitations = ListQuery({});
export const InvitationPage = Page(Invitation);
export const CreateInvitation = Strict(
  { role: Role, canDecide: setCanDecide, email: Type.Optional(Email), name: Type.Optional(Name) },
  { title: 'CreateInvitation' },
);

const link = Type.Optional(
  Type.String({
    description:
      'Pass it on yourself; it is shown only once. Absent only from an idempotent replay by another sign-in.',
  }),
);
export const CreatedInvitation = Type.Object({ invitation: Invitation, link }, { title: 'CreatedInvitation' });
export const PasswordReset = Type.Object({ link, expiresAt: Timestamp }, { title: 'PasswordReset' });

export const Organization = Type.Object(
  {
    organizationId: Id('org'),
    name: Type.String(),
    allowedOrigins: AllowedOrigins,
    pricesDate: PricesDate,
    createdAt: Timestamp,
  },
  { title: 'Organization' },
);
export type Organization = Static<typeof Organization>;
export const OrganizationParams = Strict({ organizationId: Id('org') });
export const ListOrganizations = ListQuery({});
export const OrganizationPage = Page(Organization);
export const CreateOrganization = Strict({ name: Name }, { title: 'CreateOrganization' });
export const SetupLink = Type.Object(
  {
    link: Type.Optional(
      Type.String({
        description:
          'Pass it on yourself; it is shown only once. Absent only from an idempotent replay after the token of the operator was changed.',
      }),
    ),
    expiresAt: Timestamp,
  },
  { title: 'SetupLink' },
);
export type SetupLink = Static<typeof SetupLink>;
export const UpdateOrganization = Strict({ name: Name }, { title: 'UpdateOrganization' });
export const SetOrganization = Strict({ allowedOrigins: AllowedOrigins }, { title: 'SetOrganization' });
