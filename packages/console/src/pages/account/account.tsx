import type { Passkey, SignIn } from '@signalbox/contract/console';
import { queryOptions, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { accountQuery, consoleCall } from '../../account.ts';
import { useOrganization } from '../../organization.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { TextField, textsOf } from '../../ui/field.tsx';
import { type Column, Rows } from '../../ui/list.tsx';
import { ErrorNotice, fieldError } from '../../ui/notice.tsx';
import { Await, Page } from '../../ui/page.tsx';
import { exactly, Time } from '../../ui/time.tsx';
import { useToast } from '../../ui/toast.tsx';
import { ProviderButtons } from '../sign-in/provider.tsx';
import { addPasskey, listPasskeys, removePasskey } from './passkeys.ts';

const signInsQuery = queryOptions({
  queryKey: ['sign-ins'],
  queryFn: () => consoleCall('GET /sign_ins'),
});

export function AccountPage() {
  const { user } = useOrganization();
  const { data: account } = useQuery(accountQuery);
  return (
    <Page title="Your account" about={`${user.name}, ${user.email}`}>
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
      label: 'Browser',
      cell: ({ userAgent, isThis }) => (
        <span className="row">
          {browserName(userAgent)} {isThis && <Badge tone="good">this browser</Badge>}
        </span>
      ),
    },
    { label: 'IP address', cell: ({ ipAddress }) => ipAddress ?? '' },
    { label: 'Signed in', cell: ({ createdAt }) => <Time at={createdAt} /> },
    { label: 'Last seen', cell: ({ lastUsedAt }) => <Time at={lastUsedAt} /> },
    {
      label: '',
      end: true,
      cell: ({ signInId, isThis, userAgent, ipAddress, createdAt }) =>
        !isThis && (
          <Button
            small
            onClick={() => void end(signInId)}
            aria-label={`Sign out: ${browserName(userAgent)}, ${ipAddress ?? ''}, since ${exactly(createdAt)}`}
          >
            Sign out
          </Button>
        ),
    },
  ];
  return (
    <section className="stack" aria-labelledby="sign-ins">
      <div className="row apart">
        <h2 id="sign-ins">Sign-ins</h2>
        <Button onClick={() => void endAll()}>Sign out everywhere</Button>
      </div>
      {error !== undefined && <ErrorNotice error={error} />}
      <Await query={query}>
        {({ signIns }) => (
          <div className="data-frame">
            <Rows caption="Sign-ins" items={signIns} columns={columns} rowKey={({ signInId }) => signInId} />
          </div>
        )}
      </Await>
    </section>
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
    <section className="stack" aria-labelledby="provider">
      <h2 id="provider">{provider.name}</h2>
      {data.ways.provider ? (
        <>
          <p className="quiet">
            Your account there is connected. You can sign in with it.
            {isLast && ' It is your only way to sign in. Add passkey before you disconnect it.'}
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
    </section>
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
    { label: 'Name', cell: (passkey) => passkey.name || 'Passkey' },
    { label: 'Added', cell: ({ createdAt }) => <Time at={createdAt} absent="" /> },
    {
      label: '',
      end: true,
      cell: ({ id, name: called }) => (
        <Button small onClick={() => void change(() => removePasskey(id))} aria-label={`Remove ${called || 'passkey'}`}>
          Remove
        </Button>
      ),
    },
  ];
  return (
    <section className="stack" aria-labelledby="passkeys">
      <h2 id="passkeys">Passkeys</h2>
      <p className="quiet">Sign in with your fingerprint, face or security key instead of a password.</p>
      <Await query={query}>
        {(passkeys) =>
          passkeys.length > 0 && (
            <div className="data-frame">
              <Rows caption="Passkeys" items={passkeys} columns={columns} rowKey={({ id }) => id} />
            </div>
          )
        }
      </Await>
      <form
        className="filters"
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
        <Button type="submit" busy={busy}>
          Add passkey
        </Button>
      </form>
      {error !== undefined && <ErrorNotice error={error} />}
    </section>
  );
}

function Password() {
  const queries = useQueryClient();
  const toast = useToast();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const form = event.currentTarget;
    setBusy(true);
    setError(undefined);
    try {
      // Changing the password starts a new sign-in with its own CSRF token.
      queries.setQueryData(
        accountQuery.queryKey,
        await consoleCall('POST /password', textsOf(form, ['currentPassword', 'newPassword'])),
      );
      await queries.invalidateQueries({ queryKey: ['sign-ins'] });
      form.reset();
      toast('Password changed. Other browsers are signed out.');
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  }
  return (
    <section className="stack" aria-labelledby="password">
      <h2 id="password">Password</h2>
      <form className="card narrow" onSubmit={submit} noValidate>
        <TextField
          label="Current password"
          name="currentPassword"
          type="password"
          autoComplete="current-password"
          error={fieldError(error, 'currentPassword')}
        />
        <TextField
          label="New password"
          name="newPassword"
          type="password"
          autoComplete="new-password"
          hint="At least 12 characters. A sentence works well. Every other browser will be signed out."
          error={fieldError(error, 'newPassword')}
        />
        {error !== undefined && <ErrorNotice error={error} beside={['currentPassword', 'newPassword']} />}
        <div>
          <Button type="submit" busy={busy}>
            Change password
          </Button>
        </div>
      </form>
    </section>
  );
}
