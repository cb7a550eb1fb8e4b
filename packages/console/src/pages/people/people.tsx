import type { Invitation, Member } from '@signalbox/client';
import { UserPlus } from 'lucide-react';
import { useState } from 'react';
import { useAgentName } from '../../data/agent-names.ts';
import { useApiMutation, useList, useOrganization } from '../../data/organization.tsx';
import { AdminsOnly } from '../../ui/admins-only.tsx';
import { Avatar } from '../../ui/avatar.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { EmptyState } from '../../ui/empty-state.tsx';
import { TextField } from '../../ui/field.tsx';
import { Menu } from '../../ui/menu.tsx';
import { fieldError } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { formatExact, Time } from '../../ui/time.tsx';
import { type Access, bodyOf, changesOf, everything } from './access.ts';
import { AccessFields, accessFields } from './access-fields.tsx';
import { canDecideText } from './can-decide-text.ts';
import { OneTimeLink } from './one-time-link.tsx';

type OpenDialog =
  | { what: 'invite' }
  | { what: 'role' | 'reset' | 'remove'; member: Member }
  | { what: 'withdraw'; invitation: Invitation };

/** A link that was just created. */
export interface CreatedLink {
  title: string;
  link: string | undefined;
  about: string;
}

export function PeoplePage() {
  return (
    <AdminsOnly title="People" action="manage people">
      <People />
    </AdminsOnly>
  );
}

function People() {
  const { user, name, role: own } = useOrganization();
  const members = useList(['people', 'members'], (client, page) => client.members.list(page));
  const invitations = useList(['people', 'invitations'], (client, page) => client.invitations.list(page));
  const [dialog, setDialog] = useState<OpenDialog>();
  const [created, setCreated] = useState<CreatedLink>();
  const close = () => setDialog(undefined);
  const outranks = (member: Member) => own === 'owner' || member.role !== 'owner';
  const agentName = useAgentName();
  const decides = ({ role, canDecide }: Member | Invitation) => canDecideText(role, canDecide, agentName);
  const columns: Column<Member>[] = [
    {
      id: 'name',
      label: 'Name',
      cell: (member) => (
        <span className="person-cell">
          <Avatar name={member.name} />
          <strong>
            {member.name} {member.userId === user.userId && <span className="quiet">(you)</span>}
          </strong>
        </span>
      ),
    },
    { id: 'email', label: 'Email', phone: 'under', cell: ({ email }) => <span className="quiet">{email}</span> },
    { id: 'role', label: 'Role', width: '8rem', phone: 'aside', cell: ({ role }) => <Badge>{role}</Badge> },
    {
      id: 'decides',
      label: 'Decides approvals',
      width: '14rem',
      from: 'desktop',
      choice: 'shown',
      cell: (member) => (
        <span className="quiet" title={decides(member)}>
          {decides(member)}
        </span>
      ),
    },
    {
      id: 'signed-in',
      label: 'Last signed in',
      width: '10rem',
      phone: 'under-aside',
      cell: ({ lastSignedInAt }) => <Time at={lastSignedInAt} absent="not yet" />,
    },
    {
      id: 'joined',
      label: 'Joined',
      width: '9rem',
      from: 'desktop',
      choice: 'shown',
      cell: ({ joinedAt }) => <Time at={joinedAt} />,
    },
  ];
  const invitationColumns: Column<Invitation>[] = [
    {
      id: 'for',
      label: 'For',
      cell: ({ name: invited, email }) => invited ?? email ?? <span className="quiet">anyone</span>,
    },
    { id: 'role', label: 'Role', width: '8rem', phone: 'aside', cell: ({ role }) => <Badge>{role}</Badge> },
    {
      id: 'decides',
      label: 'Decides approvals',
      width: '14rem',
      from: 'desktop',
      choice: 'shown',
      cell: (invitation) => (
        <span className="quiet" title={decides(invitation)}>
          {decides(invitation)}
        </span>
      ),
    },
    { id: 'by', label: 'Invited by', width: '20%', phone: 'under', cell: ({ invitedBy }) => invitedBy },
    {
      id: 'expires',
      label: 'Expires',
      width: '7rem',
      phone: 'under-aside',
      cell: ({ expiresAt }) => <Time at={expiresAt} />,
    },
  ];
  return (
    <Page
      title="People"
      about={`Who can sign in to ${name}, and their roles.`}
      actions={
        <Button look="primary" onClick={() => setDialog({ what: 'invite' })}>
          Invite person
        </Button>
      }
    >
      <Table
        name="members"
        caption="Members"
        query={members}
        columns={columns}
        rowKey={({ userId }) => userId}
        actions={(member) =>
          outranks(member) && (
            <Menu
              label={`Actions for ${member.name}`}
              items={[
                { label: 'Change role', onSelect: () => setDialog({ what: 'role', member }) },
                { label: 'Reset password', onSelect: () => setDialog({ what: 'reset', member }) },
                {
                  label: member.userId === user.userId ? 'Leave organization' : 'Remove',
                  danger: true,
                  onSelect: () => setDialog({ what: 'remove', member }),
                },
              ]}
            />
          )
        }
        empty={<EmptyState title="No members" />}
      />
      <section className="stack" aria-labelledby="invitations">
        <h2 id="invitations">Invitations</h2>
        <Table
          name="invitations"
          caption="Invitations"
          query={invitations}
          columns={invitationColumns}
          rowKey={({ invitationId }) => invitationId}
          actions={(invitation) => (
            <Button
              small
              onClick={() => setDialog({ what: 'withdraw', invitation })}
              aria-label={`Withdraw ${nameOf(invitation)}`}
            >
              Withdraw
            </Button>
          )}
          empty={
            <EmptyState icon={UserPlus} title="No pending invitations">
              Invite a person to give them access.
            </EmptyState>
          }
        />
      </section>
      {dialog?.what === 'invite' && <Invite mayOwner={own === 'owner'} onClose={close} onCreated={setCreated} />}
      {dialog?.what === 'role' && <ChangeRole member={dialog.member} mayOwner={own === 'owner'} onClose={close} />}
      {dialog?.what === 'reset' && <Reset member={dialog.member} onClose={close} onCreated={setCreated} />}
      {dialog?.what === 'remove' && <Remove member={dialog.member} onClose={close} />}
      {dialog?.what === 'withdraw' && <Withdraw invitation={dialog.invitation} onClose={close} />}
      {created && <OneTimeLink {...created} onClose={() => setCreated(undefined)} />}
    </Page>
  );
}

function Invite({
  mayOwner,
  onClose,
  onCreated,
}: {
  mayOwner: boolean;
  onClose: () => void;
  onCreated: (created: CreatedLink) => void;
}) {
  const [name, setName] = useState('');
  const [email, setEmail] = useState('');
  const [access, setAccess] = useState<Access>({ role: 'member', canDecide: everything });
  const invite = useApiMutation(
    (client, _: undefined) =>
      client.invitations.create({ ...bodyOf(access), ...(name && { name }), ...(email && { email }) }),
    ['people'],
  );
  return (
    <FormDialog
      title="Invite person"
      beside={['name', 'email', ...accessFields]}
      action="Create link"
      onClose={onClose}
      submit={async () => {
        const { link } = await invite.mutateAsync(undefined);
        onCreated({
          title: `Invitation link for ${name || email || 'a new member'}`,
          link,
          about: 'It works once and expires in 7 days.',
        });
      }}
    >
      <TextField
        label="Name"
        hint="Optional. They can change it when they accept."
        value={name}
        error={fieldError(invite.error, 'name')}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <TextField
        label="Email"
        type="email"
        hint="Optional. If set, only this email address can accept. We never send email to it."
        value={email}
        error={fieldError(invite.error, 'email')}
        onChange={(event) => setEmail(event.currentTarget.value)}
      />
      <AccessFields value={access} mayOwner={mayOwner} error={invite.error} onChange={setAccess} />
    </FormDialog>
  );
}

function ChangeRole({ member, mayOwner, onClose }: { member: Member; mayOwner: boolean; onClose: () => void }) {
  const organization = useOrganization();
  const [access, setAccess] = useState<Access>({ role: member.role, canDecide: member.canDecide ?? everything });
  const change = useApiMutation(
    (client, _: undefined) => client.members.update(member.userId, changesOf(member, access)),
    ['people'],
  );
  return (
    <FormDialog
      title={`Change the role of ${member.name}`}
      action="Save"
      beside={accessFields}
      onClose={onClose}
      submit={async () => {
        await change.mutateAsync(undefined);
        await organization.refreshAccount();
      }}
    >
      <AccessFields value={access} mayOwner={mayOwner} error={change.error} onChange={setAccess} />
      <p className="quiet">The change takes effect immediately, also in open pages.</p>
    </FormDialog>
  );
}

function Reset({
  member,
  onClose,
  onCreated,
}: {
  member: Member;
  onClose: () => void;
  onCreated: (created: CreatedLink) => void;
}) {
  const reset = useApiMutation((client, _: undefined) => client.members.resetPassword(member.userId), ['people']);
  return (
    <FormDialog
      title={`Reset the password of ${member.name}?`}
      action="Create link"
      onClose={onClose}
      submit={async () => {
        const { link } = await reset.mutateAsync(undefined);
        const about = 'It works once and expires in 24 hours. It signs them out everywhere and removes their passkeys.';
        onCreated({ title: `Password link for ${member.name}`, link, about });
      }}
    >
      <p>
        You get a link to send to {member.name} yourself, over a channel that you trust. Until they use it, their
        current password keeps working. Afterwards they are signed out everywhere and have to add passkeys and the
        provider again.
      </p>
    </FormDialog>
  );
}

function Remove({ member, onClose }: { member: Member; onClose: () => void }) {
  const organization = useOrganization();
  const remove = useApiMutation((client, _: undefined) => client.members.remove(member.userId), ['people']);
  const isSelf = member.userId === organization.user.userId;
  return (
    <FormDialog
      title={isSelf ? `Leave ${organization.name}?` : `Remove ${member.name}?`}
      action={isSelf ? 'Leave' : 'Remove'}
      {...(!isSelf && { done: `${member.name} removed` })}
      danger
      onClose={onClose}
      submit={async () => {
        await remove.mutateAsync(undefined);
        if (isSelf) location.assign('/console/');
      }}
    >
      <p>
        {isSelf ? 'You lose' : `${member.name} loses`} access immediately, also in open pages. API keys keep working:
        rotate those that {isSelf ? 'you' : 'they'} knew.
      </p>
    </FormDialog>
  );
}

/** Invitations for anyone differ only in their expiry. */
function nameOf({ name, email, role, expiresAt }: Invitation): string {
  return `the invitation for ${name ?? email ?? 'anyone'} as ${role}, until ${formatExact(expiresAt)}`;
}

function Withdraw({ invitation, onClose }: { invitation: Invitation; onClose: () => void }) {
  const withdraw = useApiMutation(
    (client, _: undefined) => client.invitations.delete(invitation.invitationId),
    ['people'],
  );
  return (
    <FormDialog
      title={`Withdraw ${nameOf(invitation)}?`}
      action="Withdraw"
      done="Invitation withdrawn"
      danger
      onClose={onClose}
      submit={() => withdraw.mutateAsync(undefined)}
    >
      <p>Its link stops working.</p>
    </FormDialog>
  );
}
