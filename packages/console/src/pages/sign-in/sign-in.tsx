import { useQuery } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { accountQuery, becomeAccount, consoleCall } from '../../account.ts';
import { Button } from '../../ui/button.tsx';
import { TextField, textsOf } from '../../ui/field.tsx';
import { ErrorNotice, Notice } from '../../ui/notice.tsx';
import { StandalonePage } from '../../ui/standalone-page.tsx';
import { useEnter } from './enter.ts';
import { ProviderButtons, providerError } from './provider.tsx';

export function SignInPage() {
  const enter = useEnter();
  const { from, error: refused } = useSearch({ from: '/sign-in' });
  const { data: account } = useQuery(accountQuery);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const body = textsOf(event.currentTarget, ['email', 'password']);
    setBusy(true);
    setError(undefined);
    try {
      becomeAccount(await consoleCall('POST /sign_in', body));
      enter(from);
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  }
  return (
    <StandalonePage title="Sign in">
      {refused !== undefined && <Notice kind="bad" title={providerError(refused)} />}
      <form className="stack" onSubmit={submit}>
        <TextField label="Email" name="email" type="email" autoComplete="username webauthn" required autoFocus />
        <TextField label="Password" name="password" type="password" autoComplete="current-password" required />
        {error !== undefined && <ErrorNotice error={error} />}
        <Button type="submit" look="primary" busy={busy}>
          Sign in
        </Button>
      </form>
      <ProviderButtons verb="Sign in" returnTo={`/console${from ?? '/'}`} />
      {account?.signIn.passkey && (
        <Button
          onClick={async () => {
            setError(undefined);
            try {
              const { signInWithPasskey } = await import('../account/passkeys.ts');
              await signInWithPasskey();
              enter(from);
            } catch (problem) {
              setError(problem);
            }
          }}
        >
          Sign in with a passkey
        </Button>
      )}
      <p className="quiet small">
        No account, or forgot your password? Ask an admin of your organization for a link. Operators can create one with{' '}
        <code>signalbox users</code>.
      </p>
    </StandalonePage>
  );
}
