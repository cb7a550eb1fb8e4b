// Creates session tokens (session-token.ts).
import { type Input, longestToken, type Result, scopeBehind, type TokenScope } from '@signalbox/contract';
import { currentVersion } from '../agents/agents.ts';
import { lockEnvironment } from '../environments/environments.ts';
import { recordEvent } from '../events/record.ts';
import { ApiError, invalidField } from '../lib/api-error.ts';
import { type Context, inTransaction, type TokenReach } from '../lib/context.ts';
import { formatId, uuidOf } from '../lib/ids.ts';
import { readSession, viewEndUser } from '../session-rows/session.ts';
import { secretTagOf, signSessionToken } from './session-token.ts';

/** The default of the contract. */
const HOUR_SECONDS = 3600;

/** For one session. 404 for an unknown one. */
export async function createSessionToken(
  ctx: Context,
  input: Input<'createSessionToken'>,
): Promise<Result<'createSessionToken'>> {
  const row = await readSession(ctx.db, ctx.organizationId, uuidOf('ses', input.sessionId));
  const { sessionId, agentId, environment } = row;
  return createToken(ctx, input, { sessionId, agentId, environment, endUser: viewEndUser(row) });
}

/** For the sessions of an end user with an agent. 404 for an unknown agent or environment, 409 `agent_archived`. */
export async function createEndUserToken(
  ctx: Context,
  input: Input<'createEndUserToken'>,
): Promise<Result<'createEndUserToken'>> {
  const agentId = uuidOf('agt', input.agentId);
  const { environment, endUser } = input;
  return inTransaction(ctx, async (tx, ctx) => {
    await Promise.all([
      currentVersion(tx, ctx.organizationId, agentId),
      lockEnvironment(tx, ctx.organizationId, environment),
    ]);
    return createToken(ctx, input, { sessionId: null, agentId, environment, endUser });
  });
}

async function createToken(
  ctx: Context,
  { scopes, expiresInSeconds = HOUR_SECONDS }: { scopes: TokenScope[]; expiresInSeconds?: number },
  reach: Omit<TokenReach, 'scopes' | 'expiresAt'>,
): Promise<Result<'createSessionToken'>> {
  const { keyId, keySecretHash, organizationId, vault } = ctx;
  if (keyId === null || !keySecretHash) throw new ApiError('api_key_required', 'Create tokens with an API key.');
  for (const scope of scopes) {
    const needed = scopeBehind[scope];
    if (ctx.scopes.has(needed)) continue;
    throw new ApiError('insufficient_permission', `A token with "${scope}" needs a key with the scope "${needed}".`);
  }
  const now = ctx.clock.now();
  const expiresAt = new Date((Math.floor(now.getTime() / 1000) + expiresInSeconds) * 1000);
  const secretTag = secretTagOf(keySecretHash);
  const token = signSessionToken(vault, { ...reach, organizationId, keyId, secretTag, scopes, expiresAt });
  if (token.length > longestToken) throw invalidField('endUser', 'is too long for a token');
  const { sessionId, agentId, environment } = reach;
  await inTransaction(ctx, (tx, ctx) =>
    tx.execute(
      recordEvent(ctx, now, {
        type: 'session_token.created',
        resource: sessionId
          ? { type: 'session', id: formatId('ses', sessionId) }
          : { type: 'agent', id: formatId('agt', agentId) },
        environment,
        sessionId: sessionId && formatId('ses', sessionId),
        agentId: agentId && formatId('agt', agentId),
        changes: { scopes: [null, scopes], expiresAt: [null, expiresAt.toISOString()] },
      }),
    ),
  );
  return { token, expiresAt: expiresAt.toISOString(), scopes };
}
