// Passkeys, by the browser's own dialogs. Loaded where somebody uses one.
import { startAuthentication, startRegistration } from '@simplewebauthn/browser';
import { type Account, becomeAccount, consoleCall } from '../../account.ts';

export interface Passkey {
  id: string;
  name: string | null;
  createdAt: string | null;
}

export function listPasskeys(): Promise<Passkey[]> {
  return consoleCall('GET', 'auth/passkey/list-user-passkeys');
}

/** The browser asks the person; rejects where they decline. */
export async function addPasskey(name: string): Promise<void> {
  const query = new URLSearchParams({ name });
  const optionsJSON = await consoleCall<Parameters<typeof startRegistration>[0]['optionsJSON']>(
    'GET',
    `auth/passkey/generate-register-options?${query}`,
  );
  const response = await startRegistration({ optionsJSON });
  await consoleCall('POST', 'auth/passkey/verify-registration', { response, name });
}

export function removePasskey(id: string): Promise<unknown> {
  return consoleCall('POST', 'auth/passkey/delete-passkey', { id });
}

/** Signs in by a passkey of this device, or one near it. */
export async function signInWithPasskey(): Promise<void> {
  const optionsJSON = await consoleCall<Parameters<typeof startAuthentication>[0]['optionsJSON']>(
    'GET',
    'auth/passkey/generate-authenticate-options',
  );
  const response = await startAuthentication({ optionsJSON });
  await consoleCall('POST', 'auth/passkey/verify-authentication', { response });
  becomeAccount(await consoleCall<Account>('GET', 'account'));
}
