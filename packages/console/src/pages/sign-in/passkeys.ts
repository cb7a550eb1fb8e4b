// Passkeys with the browser's own dialogs. Loaded on first use.

import type { Passkey } from '@signalbox/contract/console';
import {
  type PublicKeyCredentialCreationOptionsJSON,
  type PublicKeyCredentialRequestOptionsJSON,
  startAuthentication,
  startRegistration,
} from '@simplewebauthn/browser';
import { becomeAccount, consoleCall } from '../../data/account.ts';

export function listPasskeys(): Promise<Passkey[]> {
  return consoleCall('GET /auth/passkey/list-user-passkeys');
}

/** Opens the browser's dialog. False if the user closes it. */
export async function addPasskey(name: string): Promise<boolean> {
  const options = await consoleCall('GET /auth/passkey/generate-register-options');
  const optionsJSON = options as PublicKeyCredentialCreationOptionsJSON;
  const response = await startRegistration({ optionsJSON }).catch(closed);
  if (!response) return false;
  await consoleCall('POST /auth/passkey/verify-registration', { response, name });
  return true;
}

export function removePasskey(id: string): Promise<unknown> {
  return consoleCall('POST /auth/passkey/delete-passkey', { id });
}

/** Signs in with a passkey of this device or a nearby one. False if the user closes the browser's dialog. */
export async function signInWithPasskey(): Promise<boolean> {
  const options = await consoleCall('GET /auth/passkey/generate-authenticate-options');
  const optionsJSON = options as PublicKeyCredentialRequestOptionsJSON;
  const response = await startAuthentication({ optionsJSON }).catch(closed);
  if (!response) return false;
  await consoleCall('POST /auth/passkey/verify-authentication', { response });
  becomeAccount(await consoleCall('GET /account'));
  return true;
}

/** Browsers say no more than this, so that pages don't learn which passkeys there are. */
function closed(error: unknown): undefined {
  if (error instanceof Error && ['NotAllowedError', 'AbortError'].includes(error.name)) return undefined;
  throw error;
}
