// The console's own API as routes, so that it is fuzzed like the contract.
import type { Route } from '@signalbox/contract';
import { type ConsoleCall, consoleRoutes } from '@signalbox/contract/console';
import { Type } from 'typebox';

/** As a browser creates it, with any contents. */
const Credential = Type.Object({
  id: Type.String(),
  rawId: Type.String(),
  type: Type.Literal('public-key'),
  response: Type.Object({
    clientDataJSON: Type.String(),
    authenticatorData: Type.String(),
    attestationObject: Type.String(),
    signature: Type.String(),
  }),
});
/** Bodies with a part that the browser creates and the contract does not describe. */
const byBrowser: Partial<Record<ConsoleCall, object>> = {
  'POST /auth/passkey/verify-registration': Type.Object({ response: Credential, name: Type.String() }),
  'POST /auth/passkey/verify-authentication': Type.Object({ response: Credential }),
};

/** The routes below /console/api. The one that signs the user out is last. */
export const consoleCalls: Record<string, Route> = Object.fromEntries(
  Object.entries(consoleRoutes)
    // Without a provider this route does not exist.
    .filter(([call]) => call !== 'POST /oidc')
    .toSorted(([a], [b]) => Number(a === 'POST /sign_out') - Number(b === 'POST /sign_out'))
    .map(([call, route]) => {
      const [method, path] = call.split(' ');
      const body = byBrowser[call as ConsoleCall] ?? ('body' in route ? route.body : undefined);
      // The CSRF token belongs to the signed-in user.
      const shown = { byPerson: true, reveals: 'csrfToken' };
      return [call, { ...route, method, path: `/console/api${path}`, body, ...shown } as unknown as Route];
    }),
);
