import type { Passkey, SignIn } from '@signalbox/contract/console';
import { queryOptions, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { accountQuery, consoleCall } from '../../data/account.ts';
import { useOrganization } from '../../data/organization.tsx';
import { Avatar } from '../../ui/avatar.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { TextField, textsOf } from '../../ui/field.tsx';
import { useForm } from '../../ui/form.ts';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Page } from '../../ui/page.tsx';
import { PasswordField } from '../../ui/password-field.tsx';
import { Setting } from '../../ui/setting.tsx';
import { type Column, loaded, Table } from '../../ui/table.tsx';
import { formatExact, Time } from '../../ui/time.tsx';
import { useToast } from '../../ui/toast.tsx';
import { addPasskey, listPasskeys, removePasskey } from '../sign-in/passkeys.ts';
import { ProviderButtons } from '../sign-in/provider.tsx';

const signInsQuery = queryOptions({
  queryKey: ['sign-ins'],
  queryFn: () => consoleCall('GET /sign_ins'),
});

export function AccountPage() {
  const { user } = useOrganization();
  const { data: account } = useQuery(accountQuery);
  return (
    <Page
      title="Your account"
      about={
        <span className="person-cell">
          <Avatar name={user.name} />
          <span>
            <strong>{user.name}</strong> {user.email}
          </span>
        </span>
      }
    >
      <SignIns />
      {account?.signIn.passkey && <Passkeys />}
      <Provider />
      <Password />
    </Page>
  );
}

function SignIns() {
  const queries = useQueryClient();
  const toast = useToast();
  const [error, setError] = useState<unknown>();
  const query = useQuery(signInsQuery);
  async function end(signInId: string) {
    try {
      await consoleCall('POST /sign_ins/end', { signInId });
      await queries.invalidateQueries({ queryKey: ['sign-ins'] });
      toast('Browser signed out');
    } catch (problem) {
      setError(problem);
    }
  }
  async function endAll() {
    try {
      await consoleCall('POST /sign_out', { everywhere: true });
      location.assign('/console/sign-in');
    } catch (problem) {
      setError(problem);
    }
  }
  const columns: Column<SignIn>[] = [
    {
      id: 'browser',
      label: 'Browser',
      cell: ({ userAgent, isThis }) => (
        <>
          {browserName(userAgent)} {isThis && <Badge tone="good">this browser</Badge>}
        </>
      ),
    },
    { id: 'ip', label: 'IP address', width: '9rem', phone: 'under', cell: ({ ipAddress }) => ipAddress ?? '' },
    { id: 'since', label: 'Signed in', width: '8rem', cell: ({ createdAt }) => <Time at={createdAt} /> },
    {
      id: 'seen',
      label: 'Last seen',
      width: '8rem',
      phone: 'under-aside',
      cell: ({ lastUsedAt }) => <Time at={lastUsedAt} />,
    },
  ];
  return (
    <Setting
      title="Sign-ins"
      about="The browsers in which you are signed in."
      action={<Button onClick={() => void endAll()}>Sign out everywhere</Button>}
    >
      {error !== undefined && <ErrorNotice error={error} />}
      <Table
        name="sign-ins"
        caption="Sign-ins"
        query={{ ...query, data: query.data?.signIns }}
        columns={columns}
        rowKey={({ signInId }) => signInId}
        actions={({ signInId, isThis, userAgent, ipAddress, createdAt }) =>
          !isThis && (
            <Button
              small
              onClick={() => void end(signInId)}
              aria-label={`Sign out: ${browserName(userAgent)}, ${ipAddress ?? ''}, since ${formatExact(createdAt)}`}
            >
              Sign out
            </Button>
          )
        }
        empty={null}
      />
    </Setting>
  );
}

/** A readable name. The full user agent is in the event log. */
function browserName(userAgent: string | null): string {
  if (!userAgent) return 'unknown';
  const browser = [
    ['Edg/', 'Edge'],
    ['Firefox/', 'Firefox'],
    ['Chrome/', 'Chrome'],
    ['Safari/', 'Safari'],
  ].find(([mark]) => userAgent.includes(mark!))?.[1];
  const system = ['iPhone', 'iPad', 'Android', 'Windows', 'Mac OS', 'Linux'].find((mark) => userAgent.includes(mark));
  return browser ? `${browser}${system ? ` on ${system}` : ''}` : userAgent.slice(0, 60);
}

/** The organization's sign-in provider, if one is configured. */
function Provider() {
  const { organizationId } = useOrganization();
  const { data: account } = useQuery(accountQuery);
  const { data } = useQuery(signInsQuery);
  const queries = useQueryClient();
  const toast = useToast();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [provider] = account?.signIn.providers ?? [];
  if (!provider || !data) return null;
  const isLast = !data.ways.password && data.ways.passkeys === 0;
  async function disconnect() {
    setBusy(true);
    setError(undefined);
    try {
      await consoleCall('POST /oidc/disconnect', {});
      await queries.invalidateQueries({ queryKey: ['sign-ins'] });
      toast('Disconnected');
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  }
  return (
    <Setting title={provider.name} about="The sign-in provider of your organization.">
      {data.ways.provider ? (
        <>
          <p className="quiet">
            Your account there is connected. You can sign in with it.
            {isLast && ' It is your only way to sign in. Add a passkey before you disconnect it.'}
          </p>
          {!isLast && (
            <div className="row">
              <Button busy={busy} onClick={() => void disconnect()}>
                Disconnect {provider.name}
              </Button>
            </div>
          )}
        </>
      ) : (
        <div className="row">
          <ProviderButtons verb="Connect" link returnTo={`/console/${organizationId}/account`} />
        </div>
      )}
      {error !== undefined && <ErrorNotice error={error} />}
    </Setting>
  );
}

function Passkeys() {
  const queries = useQueryClient();
  const [name, setName] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const query = useQuery({ queryKey: ['passkeys'], queryFn: listPasskeys });
  async function change(act: () => Promise<unknown>) {
    setBusy(true);
    setError(undefined);
    try {
      await act();
      setName('');
      await queries.invalidateQueries({ queryKey: ['passkeys'] });
      await queries.invalidateQueries({ queryKey: ['sign-ins'] });
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  }
  const columns: Column<Passkey>[] = [
    { id: 'name', label: 'Name', cell: (passkey) => passkey.name || 'Passkey' },
    {
      id: 'added',
      label: 'Added',
      width: '9rem',
      phone: 'under',
      cell: ({ createdAt }) => <Time at={createdAt} absent="" />,
    },
  ];
  return (
    <Setting title="Passkeys" about="Sign in with your fingerprint, face or security key instead of a password.">
      {query.error != null && <ErrorNotice error={query.error} retry={() => query.refetch()} />}
      {query.data && query.data.length > 0 && (
        <Table
          name="passkeys"
          caption="Passkeys"
          query={loaded(query.data)}
          columns={columns}
          rowKey={({ id }) => id}
          actions={({ id, name: called }) => (
            <Button
              small
              onClick={() => void change(() => removePasskey(id))}
              aria-label={`Remove ${called || 'passkey'}`}
            >
              Remove
            </Button>
          )}
          empty={null}
        />
      )}
      <form
        className="card"
        onSubmit={(event) => {
          event.preventDefault();
          void change(() => addPasskey(name || 'Passkey'));
        }}
      >
        <TextField
          label="Device name"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          placeholder="My phone"
        />
        <div>
          <Button type="submit" busy={busy}>
            Add passkey
          </Button>
        </div>
        {error !== undefined && <ErrorNotice error={error} />}
      </form>
    </Setting>
  );
}

function Password() {
  const queries = useQueryClient();
  const toast = useToast();
  const { props, busy, error, errorOf } = useForm(async (form) => {
    // Changing the password starts a new sign-in with its own CSRF token.
    queries.setQueryData(
      accountQuery.queryKey,
      await consoleCall('POST /password', textsOf(form, ['currentPassword', 'newPassword'])),
    );
    await queries.invalidateQueries({ queryKey: ['sign-ins'] });
    form.reset();
    toast('Password changed. Other browsers are signed out.');
  });
  return (
    <Setting title="Password" about="Every other browser is signed out when you change it.">
      <form className="card" {...props}>
        <PasswordField
          label="Current password"
          name="currentPassword"
          autoComplete="current-password"
          error={errorOf('currentPassword')}
        />
        <PasswordField
          label="New password"
          name="newPassword"
          autoComplete="new-password"
          hint="At least 12 characters. A sentence works well."
          error={errorOf('newPassword')}
        />
        {error !== undefined && <ErrorNotice error={error} beside={['currentPassword', 'newPassword']} />}
        <div>
          <Button type="submit" busy={busy}>
            Change password
          </Button>
        </div>
      </form>
    </Setting>
  );
}
