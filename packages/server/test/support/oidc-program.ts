// A certified OpenID Connect provider, as a program of its own would run it: sign-in, consent, codes, keys, tokens, the user's profile.
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Provider } from 'oidc-provider';
import { vi } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { watchSecret } from './service.ts';

const clientId = 'signalbox';
const clientSecret = 'a secret of the client at the program';

export interface OidcProgram {
  readonly issuer: string;
  readonly config: Partial<Config>;
  /** Registers the client, whose address is known once the service runs. */
  register(redirectUri: string): void;
  /** Who signs in next; null: they decline. */
  person: { id: string; email: string; name: string } | null;
  /** Goes through the pages of the provider with a browser of its own, and returns the address that it redirects to. */
  follow(url: string): Promise<URL>;
  close(): Promise<void>;
}

/** Signs ID tokens with ES256, requires PKCE, and shows the email only at its endpoint for profiles, as most providers do. */
export async function startOidcProgram(): Promise<OidcProgram> {
  // It warns that it keeps everything in memory, and of each default.
  for (const name of ['warn', 'info'] as const) vi.spyOn(console, name).mockReturnValue();
  const oidc = await import('oidc-provider');
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  watchSecret(clientSecret);
  let provider: Provider;
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });

  async function interact(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { prompt, params, session } = await provider.interactionDetails(request, response);
    const finish = (result: object) => provider.interactionFinished(request, response, result);
    if (!program.person) return finish({ error: 'access_denied', error_description: 'They declined' });
    if (prompt.name === 'login') return finish({ login: { accountId: program.person.id } });
    const grant = new provider.Grant({ accountId: session!.accountId, clientId: params.client_id });
    grant.addOIDCScope((prompt.details.missingOIDCScope ?? []).join(' '));
    return finish({ consent: { grantId: await grant.save() } });
  }

  const program: OidcProgram = {
    issuer,
    config: { oidcIssuer: issuer, oidcClientId: clientId, oidcClientSecret: clientSecret, oidcName: 'Program' },
    person: null,
    register(redirectUri) {
      provider = new oidc.Provider(issuer, {
        clients: [
          {
            client_id: clientId,
            client_secret: clientSecret,
            redirect_uris: [redirectUri],
            id_token_signed_response_alg: 'ES256',
          },
        ],
        jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'ES256', kid: 'k1' }] },
        enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
        claims: { email: ['email', 'email_verified'], profile: ['name'] },
        findAccount: (_: unknown, id: string) => ({
          accountId: id,
          claims: () => ({ ...program.person, sub: id, email_verified: false }),
        }),
        pkce: { required: () => true },
        cookies: { keys: ['of the test'] },
        features: { devInteractions: { enabled: false } },
        interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
      });
      const respond = provider.callback();
      server.on('request', (request, response) => {
        if (request.url!.startsWith('/interaction/')) void interact(request, response);
        else respond(request, response);
      });
    },
    async follow(url) {
      const cookies = new Map<string, string>();
      for (let at = new URL(url); at.origin === issuer; ) {
        const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
        const response = await fetch(at, { redirect: 'manual', headers: { cookie } });
        for (const line of response.headers.getSetCookie()) {
          const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
          cookies.set(name, value);
        }
        const location = response.headers.get('location');
        if (!location) throw new Error(`${response.status} at ${at.pathname}: ${await response.text()}`);
        at = new URL(location, at);
        if (at.origin !== issuer) return at;
      }
      throw new Error('The address is not of this provider');
    },
    async close() {
      server.close().closeAllConnections();
      await once(server, 'close');
    },
  };
  return program;
}
