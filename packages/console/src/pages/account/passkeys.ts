// Passkeys, by the browser's own dialogs. Loaded where somebody uses one.

import type { Passkey } from '@signalbox/contract/console';
import {
  type PublicKeyCredentialCreationOptionsJSON,
  type PublicKeyCredentialRequestOptionsJSON,
  startAuthentication,
  startRegistration,
} from '@simplewebauthn/browser';
import { becomeAccount, consoleCall } from '../../account.ts';

export function listPasskeys(): Promise<Passkey[]> {
  return consoleCall('GET /auth/passkey/list-user-passkeys');
}

/** The browser asks the person; rejects where they decline. */
export async function addPasskey(name: string): Promise<void> {
  const options = await consoleCall('GET /auth/passkey/generate-register-options');
  const response = await startRegistration({ optionsJSON: options as PublicKeyCredentialCreationOptionsJSON });
  await consoleCall('POST /auth/passkey/verify-registration', { response, name });
}

export function removePasskey(id: string): Promise<unknown> {
  return consoleCall('POST /auth/passkey/delete-passkey', { id });
}

/** Signs in by a passkey of this device, or one near it. */
export async function signInWithPasskey(): Promise<void> {
  const options = await consoleCall('GET /auth/passkey/generate-authenticate-options');
  const response = await startAuthentication({ optionsJSON: options as PublicKeyCredentialRequestOptionsJSON });
  await consoleCall('POST /auth/passkey/verify-authentication', { response });
  becomeAccount(await consoleCall('GET /account'));
}
