// Passkeys with the browser's own dialogs. Loaded on first use.

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

/** Opens the browser's dialog. Rejects if the user declines. */
export async function addPasskey(name: string): Promise<void> {
  const options = await consoleCall('GET /auth/passkey/generate-register-options');
  const response = await startRegistration({ optionsJSON: options as PublicKeyCredentialCreationOptionsJSON });
  await consoleCall('POST /auth/passkey/verify-registration', { response, name });
}

export function removePasskey(id: string): Promise<unknown> {
  return consoleCall('POST /auth/passkey/delete-passkey', { id });
}

/** Signs in with a passkey of this device or a nearby one. */
export async function signInWithPasskey(): Promise<void> {
  const options = await consoleCall('GET /auth/passkey/generate-authenticate-options');
  const response = await startAuthentication({ optionsJSON: options as PublicKeyCredentialRequestOptionsJSON });
  await consoleCall('POST /auth/passkey/verify-authentication', { response });
  becomeAccount(await consoleCall('GET /account'));
}
