import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { accountQuery, consoleCall } from '../../data/account.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';

/** Buttons for the organization's OpenID Connect sign-in, which returns to `returnTo`. None if no provider is configured. */
export function ProviderButtons({
  verb,
  returnTo,
  ...wish
}: {
  /** `Sign in`, `Continue`, `Connect`. */
  verb: string;
  /** A page of the console, such as `/console/link`. */
  returnTo: string;
  /** The token of an invitation or setup link. */
  token?: string;
  /** Connects the provider to the signed-in user. */
  link?: true;
}) {
  const { data: account } = useQuery(accountQuery);
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  async function go() {
    setBusy(true);
    setError(undefined);
    try {
      const { url } = await consoleCall('POST /oidc', { returnTo, ...wish });
      location.assign(url);
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  }
  return (
    <>
      {account?.signIn.providers.map(({ id, name }) => (
        <Button key={id} busy={busy} onClick={go}>
          {verb} with {name}
        </Button>
      ))}
      {error !== undefined && <ErrorNotice error={error} />}
    </>
  );
}

const errors: ReadonlyMap<string, string> = new Map([
  [
    'signup_disabled',
    'No user here has this account. Ask an admin of your organization to invite you, and open the invitation link.',
  ],
  [
    'account_not_linked',
    'This account is not connected to a user. Sign in the way you usually do, then connect it under “Your account”, or open an invitation link.',
  ],
]);

/** The message for an error of the provider's sign-in. */
export function providerError(code: string): string {
  return errors.get(code) ?? `Sign-in failed (${code.slice(0, 100)}). Try again, or sign in with your password.`;
}
