// A link with a one-time token: setup of an installation, an invitation, or a new password.

import { SignalboxError } from '@signalbox/client';
import type { Account, Link } from '@signalbox/contract/console';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { accountQuery, becomeAccount, consoleCall } from '../../data/account.ts';
import { Button } from '../../ui/button.tsx';
import { TextField } from '../../ui/field.tsx';
import { useForm } from '../../ui/form.ts';
import { ErrorNotice, Notice } from '../../ui/notice.tsx';
import { Await } from '../../ui/page.tsx';
import { PasswordField } from '../../ui/password-field.tsx';
import { Or, StandalonePage } from '../../ui/standalone-page.tsx';
import { Time } from '../../ui/time.tsx';
import { useEnter } from './enter.ts';
import { ProviderButtons } from './provider.tsx';

// Kept in this tab only, for reloads and the redirect back from a provider. Removed from the address bar and the history.
const KEY = 'signalbox.link';
function takeToken(): string {
  if (location.hash.length > 1) {
    sessionStorage.setItem(KEY, location.hash.slice(1));
    history.replaceState(history.state, '', location.pathname);
  }
  return sessionStorage.getItem(KEY) ?? '';
}

/** The newest link opened in this tab. A second one differs only in the fragment and does not reload the page. */
function useToken(): string {
  const [token, setToken] = useState(takeToken);
  useEffect(() => {
    const take = () => setToken(takeToken());
    window.addEventListener('hashchange', take);
    return () => window.removeEventListener('hashchange', take);
  }, []);
  return token;
}

export function LinkPage() {
  const token = useToken();
  const { data: account } = useQuery(accountQuery);
  const query = useQuery({
    queryKey: ['link', token],
    queryFn: async () => (await consoleCall('POST /links/look', { token })).link,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (!token) {
    return (
      <StandalonePage title="The link is incomplete">
        <p>Copy the whole link and open it again. It ends with # and a long code.</p>
      </StandalonePage>
    );
  }
  if (query.error instanceof SignalboxError && query.error.code === 'link_invalid') {
    return (
      <StandalonePage title="The link no longer works" foot={<a href="/console/">Sign in</a>}>
        <p>{query.error.detail}</p>
      </StandalonePage>
    );
  }
  return (
    <StandalonePage
      title={query.data ? titles[query.data.type](query.data.organizationName) : 'Your link'}
      foot={
        query.data && (
          <>
            This link works once and expires <Time at={query.data.expiresAt} />.
          </>
        )
      }
    >
      <Await query={query}>{(link) => <LinkForm key={token} token={token} link={link} account={account} />}</Await>
    </StandalonePage>
  );
}

const titles: Record<Link['type'], (organization: string) => string> = {
  setup: () => 'Welcome to Signalbox',
  invitation: (organization) => `Join ${organization}`,
  passwordReset: () => 'Choose a new password',
};

/** The fields that the form shows. */
function fieldsOf(isReset: boolean, isSignedIn: boolean): string[] {
  if (isReset) return ['password'];
  return isSignedIn ? ['organizationName'] : ['organizationName', 'name', 'email', 'password'];
}

function LinkForm({ token, link, account }: { token: string; link: Link; account: Account | undefined }) {
  const enter = useEnter();
  const isReset = link.type === 'passwordReset';
  const person = isReset ? null : account?.user;
  const { props, busy, error, errorOf } = useForm(async (form) => {
    // The fields depend on the link and on who is signed in.
    const fields = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value)]));
    const next = await consoleCall('POST /links/accept', { ...fields, token });
    const before = new Set(account?.organizations.map(({ organizationId }) => organizationId));
    const joined = next.organizations.find(({ organizationId }) => !before.has(organizationId));
    becomeAccount(next);
    sessionStorage.removeItem(KEY);
    enter(joined && `/${joined.organizationId}${link.type === 'setup' ? '/start' : ''}`);
  });
  return (
    <form className="stack" {...props}>
      {link.type === 'setup' && <p>Create the first account. You’ll be the owner of this organization.</p>}
      {link.type === 'invitation' && (
        <p>
          You are invited to <strong>{link.organizationName}</strong> as <strong>{link.role}</strong>.
        </p>
      )}
      {link.type === 'setup' && (
        <TextField
          label="Organization name"
          name="organizationName"
          autoComplete="organization"
          error={errorOf('organizationName')}
        />
      )}
      {person ? (
        <Notice>
          <p>
            You are signed in as {person.name} ({person.email}). You’ll join with this account.
          </p>
        </Notice>
      ) : (
        <>
          {!isReset && (
            <>
              <TextField
                label="Your name"
                name="name"
                autoComplete="name"
                defaultValue={link.name ?? ''}
                error={errorOf('name')}
              />
              <TextField
                label="Email"
                name="email"
                type="email"
                autoComplete="username"
                defaultValue={link.email ?? ''}
                hint="You’ll sign in with this. We never send email to it."
                error={errorOf('email')}
              />
            </>
          )}
          {isReset && link.email && (
            <p className="quiet">
              For {link.email}. You’ll be signed out everywhere, and will have to add passkeys and a connected provider
              again.
              <input type="hidden" autoComplete="username" value={link.email} readOnly />
            </p>
          )}
          <PasswordField
            label={isReset ? 'New password' : 'Password'}
            name="password"
            autoComplete="new-password"
            hint="At least 12 characters. A sentence works well."
            error={errorOf('password')}
          />
        </>
      )}
      {error !== undefined && <ErrorNotice error={error} beside={fieldsOf(isReset, person != null)} />}
      <Button type="submit" look="primary" busy={busy}>
        {isReset ? 'Set password' : person ? `Join ${link.organizationName}` : 'Create account'}
      </Button>
      {!isReset && !person && (
        <>
          {account && account.signIn.providers.length > 0 && <Or />}
          <ProviderButtons verb="Continue" token={token} returnTo="/console/link" />
        </>
      )}
    </form>
  );
}
