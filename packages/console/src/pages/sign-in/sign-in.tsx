import { useQuery } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import { accountQuery, becomeAccount, consoleCall } from '../../data/account.ts';
import { Button } from '../../ui/button.tsx';
import { TextField, textsOf } from '../../ui/field.tsx';
import { useForm } from '../../ui/form.ts';
import { ErrorNotice, Notice } from '../../ui/notice.tsx';
import { PasswordField } from '../../ui/password-field.tsx';
import { Or, StandalonePage } from '../../ui/standalone-page.tsx';
import { useEnter } from './enter.ts';
import { ProviderButtons, providerError } from './provider.tsx';

export function SignInPage() {
  const enter = useEnter();
  const { from, error: refused, expired } = useSearch({ from: '/sign-in' });
  const { data: account } = useQuery(accountQuery);
  const { props, busy, error, setError, errorOf } = useForm(async (form) => {
    becomeAccount(await consoleCall('POST /sign_in', textsOf(form, ['email', 'password'])));
    enter(from);
  });
  async function signInWithPasskey() {
    setError(undefined);
    try {
      const passkeys = await import('./passkeys.ts');
      if (await passkeys.signInWithPasskey()) enter(from);
    } catch (problem) {
      setError(problem);
    }
  }
  const hasOther = account && (account.signIn.passkey || account.signIn.providers.length > 0);
  return (
    <StandalonePage
      title="Sign in"
      foot={
        <>
          No account, or forgot your password? Ask an admin of your organization for a link. Operators can create one
          with <code>signalbox users</code>.
        </>
      }
    >
      {refused !== undefined && <Notice kind="bad" title={providerError(refused)} />}
      {expired && refused === undefined && (
        <Notice live>
          <p>Your session has expired. Sign in again to continue.</p>
        </Notice>
      )}
      <form className="stack" {...props}>
        <TextField
          label="Email"
          name="email"
          type="email"
          autoComplete="username webauthn"
          autoFocus
          error={errorOf('email')}
        />
        <PasswordField label="Password" name="password" autoComplete="current-password" error={errorOf('password')} />
        {error !== undefined && <ErrorNotice error={error} beside={['email', 'password']} />}
        <Button type="submit" look="primary" busy={busy}>
          Sign in
        </Button>
      </form>
      {hasOther && <Or />}
      <ProviderButtons verb="Sign in" returnTo={`/console${from ?? '/'}`} />
      {account?.signIn.passkey && <Button onClick={() => void signInWithPasskey()}>Sign in with a passkey</Button>}
    </StandalonePage>
  );
}
