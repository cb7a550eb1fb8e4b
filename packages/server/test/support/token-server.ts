/** Token endpoints of clouds: they check what a token is requested with, and refuse the rest as the real ones do. */
import { type KeyObject, verify } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface TokenServer {
  readonly port: number;
  /** The tokens that it has issued, the newest last. */
  readonly issued: string[];
  /** What it has refused, and why. */
  readonly refused: string[];
  close(): Promise<void>;
}

/** Why the request gets no token: an error of RFC 6749 and its description. Undefined: it gets one. */
export type TokenRule = (form: URLSearchParams) => [error: string, description: string] | undefined;

export async function startTokenServer(rule: TokenRule): Promise<TokenServer> {
  const issued: string[] = [];
  const refused: string[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const isForm = request.headers['content-type'] === 'application/x-www-form-urlencoded';
    const form = new URLSearchParams(Buffer.concat(chunks).toString());
    const problem =
      request.method === 'POST' && isForm ? rule(form) : (['invalid_request', 'A form must be posted'] as const);
    response.writeHead(problem ? 400 : 200, { 'content-type': 'application/json' });
    if (problem) {
      refused.push(problem[1]);
      response.end(JSON.stringify({ error: problem[0], error_description: problem[1] }));
    } else {
      const token = `ya29.token-${issued.length + 1}-of-the-account`;
      issued.push(token);
      response.end(JSON.stringify({ access_token: token, expires_in: 3599, token_type: 'Bearer' }));
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    issued,
    refused,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Google, for the key of a service account (RFC 7523). `url`: the audience that assertions must have. */
export function serviceAccountRule(account: {
  email: string;
  keyId: string;
  publicKey: KeyObject;
  url: string;
}): TokenRule {
  return (form) => {
    if (form.get('grant_type') !== 'urn:ietf:params:oauth:grant-type:jwt-bearer')
      return ['unsupported_grant_type', `Invalid grant_type: ${form.get('grant_type')}`];
    const [head = '', claims = '', signature = ''] = (form.get('assertion') ?? '').split('.');
    const decoded = [head, claims].map((part) => JSON.parse(Buffer.from(part, 'base64url').toString() || '{}'));
    const [{ alg, typ, kid }, { iss, scope, aud, iat, exp }] = decoded;
    if (alg !== 'RS256' || typ !== 'JWT' || kid !== account.keyId) return ['invalid_grant', 'Invalid JWT header'];
    const isSigned = verify(
      'RSA-SHA256',
      Buffer.from(`${head}.${claims}`),
      account.publicKey,
      Buffer.from(signature, 'base64url'),
    );
    if (!isSigned) return ['invalid_grant', 'Invalid JWT Signature.'];
    if (iss !== account.email) return ['invalid_grant', 'Invalid grant: account not found'];
    if (aud !== account.url) return ['invalid_grant', 'Invalid JWT: Failed audience check.'];
    const now = Date.now() / 1000;
    if (!(iat <= now + 60 && exp > now && exp - iat <= 3600))
      return [
        'invalid_grant',
        'Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe.',
      ];
    if (scope !== 'https://www.googleapis.com/auth/cloud-platform') return ['invalid_scope', 'Invalid OAuth scope'];
    return undefined;
  };
}
