// An OpenID Connect provider in the test: discovery, keys, the authorization code flow with PKCE, ID tokens signed with RS256.
import { createHash, createHmac, createSign, generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Config, readConfig } from '../../src/config/config.ts';
import { watchSecret } from './service.ts';

export interface Claims {
  sub: string;
  email: string;
  email_verified: boolean;
  name: string;
}

interface Faults {
  /** Changes the claims of the ID token; undefined: the claim is missing. */
  tamper?: Record<string, unknown>;
  badSignature?: boolean;
  /** In the header of the ID token: unsigned, or signed with what anyone knows. */
  algorithm?: 'none' | 'HS256';
  noIdToken?: boolean;
  /** What the endpoint of the provider says about the person, which is read if the ID token has no email. */
  userInfo?: Record<string, unknown>;
}

export interface OidcProvider {
  readonly issuer: string;
  /** Sets who signs in next, and what is wrong with it. */
  next: Claims & Faults;
  /** The path that gets no response. */
  silentAt: string | undefined;
  /** Resolves with the next request that gets none. */
  silence(): Promise<void>;
  /** Follows an authorization request like a browser and returns the address of the redirect. */
  follow(url: string): Promise<string>;
  close(): Promise<void>;
}

const clientId = 'signalbox-test';
const clientSecret = 'the secret of the client';

/** The configuration of a service that has this provider for sign-in, with the name "Acme accounts". */
export function configOf({ issuer }: OidcProvider): Partial<Config> {
  watchSecret(clientSecret);
  const { oidcIssuer, oidcClientId, oidcClientSecret, oidcName } = readConfig(
    {},
    {
      SIGNALBOX_OIDC_ISSUER: issuer,
      SIGNALBOX_OIDC_CLIENT_ID: clientId,
      SIGNALBOX_OIDC_CLIENT_SECRET: clientSecret,
      SIGNALBOX_OIDC_NAME: 'Acme accounts',
    },
  );
  return { oidcIssuer, oidcClientId, oidcClientSecret, oidcName };
}

export async function startOidcProvider(): Promise<OidcProvider> {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const codes = new Map<string, { challenge: string; nonce: string | null; redirectUri: string }>();
  let silent = Promise.withResolvers<void>();
  const server = createServer(async (request, response) => {
    const url = new URL(request.url!, issuer());
    const json = (status: number, body: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (url.pathname === provider.silentAt) return silent.resolve();
    switch (url.pathname) {
      case '/.well-known/openid-configuration':
        return json(200, {
          issuer: issuer(),
          authorization_endpoint: `${issuer()}/authorize`,
          token_endpoint: `${issuer()}/token`,
          userinfo_endpoint: `${issuer()}/userinfo`,
          jwks_uri: `${issuer()}/keys`,
          id_token_signing_alg_values_supported: ['RS256'],
          response_types_supported: ['code'],
          subject_types_supported: ['public'],
        });
      case '/keys':
        return json(200, { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k1', alg: 'RS256', use: 'sig' }] });
      case '/authorize': {
        const given = url.searchParams;
        if (given.get('client_id') !== clientId || given.get('response_type') !== 'code') return json(400, {});
        const code = randomBytes(16).toString('hex');
        const redirectUri = given.get('redirect_uri')!;
        codes.set(code, { challenge: given.get('code_challenge')!, nonce: given.get('nonce'), redirectUri });
        const back = new URL(redirectUri);
        back.searchParams.set('code', code);
        back.searchParams.set('state', given.get('state')!);
        return response.writeHead(302, { location: back.href }).end();
      }
      case '/token': {
        const given = new URLSearchParams(await textOf(request));
        const issued = codes.get(given.get('code') ?? '');
        codes.delete(given.get('code') ?? '');
        const verifier = createHash('sha256')
          .update(given.get('code_verifier') ?? '')
          .digest('base64url');
        const basic = `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`;
        const knows = request.headers.authorization === basic || given.get('client_secret') === clientSecret;
        if (!issued || !knows || verifier !== issued.challenge || given.get('redirect_uri') !== issued.redirectUri) {
          return json(400, { error: 'invalid_grant' });
        }
        return json(200, {
          access_token: 'access',
          token_type: 'Bearer',
          expires_in: 60,
          ...(!provider.next.noIdToken && { id_token: idToken(issued.nonce) }),
        });
      }
      case '/userinfo':
        return json(200, provider.next.userInfo ?? { ...provider.next });
      default:
        return json(404, {});
    }
  });

  function idToken(nonce: string | null): string {
    const { tamper, badSignature, algorithm = 'RS256', noIdToken: _, userInfo: __, ...claims } = provider.next;
    const seconds = Math.floor(Date.now() / 1000);
    const body = { iss: issuer(), aud: clientId, iat: seconds, exp: seconds + 60, nonce, ...claims, ...tamper };
    const parts = [{ alg: algorithm, kid: 'k1', typ: 'JWT' }, body].map((part) =>
      Buffer.from(JSON.stringify(part)).toString('base64url'),
    );
    if (algorithm === 'none') return `${parts.join('.')}.`;
    if (algorithm === 'HS256') {
      const known = publicKey.export({ format: 'pem', type: 'spki' });
      return `${parts.join('.')}.${createHmac('sha256', known).update(parts.join('.')).digest('base64url')}`;
    }
    const key = badSignature ? stranger.privateKey : privateKey;
    return `${parts.join('.')}.${createSign('sha256').update(parts.join('.')).sign(key).toString('base64url')}`;
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const issuer = () => `http://127.0.0.1:${port}`;
  const provider: OidcProvider = {
    issuer: issuer(),
    next: { sub: 's1', email: 'x@example.com', email_verified: true, name: 'X' },
    silentAt: undefined,
    silence() {
      silent = Promise.withResolvers();
      return silent.promise;
    },
    async follow(url) {
      const response = await fetch(url, { redirect: 'manual' });
      return response.headers.get('location')!;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return provider;
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const part of request) text += part;
  return text;
}
