// Keeps a session token to what it reaches, for every route that tokens may use (`token` in the contract). A route says what it can reach
// by the names in its input, as it does to environment-gate.ts:
//
//   sessionId, operationId, fileId    has to be, or belong to, a session of the token; otherwise it does not exist
//   agentId, environment, endUser     are filled in; anything else does not exist
//   any other field                   only if the contract lists it (`tokenFields`)
//
// A session is reached if it is the token's own or, for a token of an end user, if it has the token's agent, environment and end user.
import type { Route, SchemaObject } from '@signalbox/contract';
import sql, { type Sql } from 'sql-template-tag';
import { ApiError, invalidField, notFound } from '../../lib/api-error.ts';
import type { Context, TokenReach } from '../../lib/context.ts';
import { formatId, uuidOf } from '../../lib/ids.ts';
import type { RawInput } from '../body/validate.ts';

export interface TokenGate {
  /** The input as it was sent, with what the token decides filled in. Throws 400 for a field that tokens can't send. */
  narrow(token: TokenReach, raw: RawInput): RawInput;
  /** Throws 404 for what the token does not reach. */
  enter(ctx: Context, token: TokenReach, input: Record<string, unknown>): Promise<void>;
}

/** By the name of a field: finds what it names, if the token reaches it. */
const reached: Readonly<Record<string, { what: string; find: (ctx: Context, token: TokenReach, id: string) => Sql }>> =
  {
    sessionId: {
      what: 'session',
      find: ({ organizationId }, token, id) => sql`
      select 1 from sessions s
      where s.organization_id = ${organizationId} and s.session_id = ${uuidOf('ses', id)} and ${isReached(token)}`,
    },
    operationId: {
      what: 'approval',
      find: ({ organizationId }, token, id) => sql`
      select 1 from approvals a
      join sessions s on s.organization_id = a.organization_id and s.session_id = a.session_id
      where a.organization_id = ${organizationId} and a.operation_id = ${uuidOf('op', id)} and ${isReached(token)}`,
    },
    // A file that a message or a tool of the session names, or that was uploaded with a token of the same reach.
    fileId: {
      what: 'file',
      find: ({ organizationId, callerId }, token, id) => sql`
      select 1 from files f
      where f.organization_id = ${organizationId} and f.file_id = ${uuidOf('file', id)} and f.purge_after is null
        and (f.uploaded_by = ${callerId} or exists (
          select 1 from file_uses u
          join sessions s on s.organization_id = u.organization_id and s.session_id = u.holder_id
          where u.organization_id = ${organizationId} and u.file_id = f.file_id and ${isReached(token)}))`,
    },
  };

function isReached({ sessionId, agentId, environment, endUser }: TokenReach): Sql {
  return sessionId === null
    ? sql`s.agent_id = ${agentId} and s.environment = ${environment} and s.end_user_id = ${endUser!.id}`
    : sql`s.session_id = ${sessionId}`;
}

export function tokenGateOf(route: Route): TokenGate {
  const allowed = new Set(route.tokenFields ?? []);
  const inQuery = namesOf(route.query).filter((name) => allowed.has(name));
  const inBody = namesOf(route.body).filter((name) => allowed.has(name));
  const named = [...namesOf(route.params), ...inQuery, ...inBody].filter((name) => name in reached);

  function filled(token: TokenReach, fields: readonly string[], given: unknown): unknown {
    if (given !== undefined && (typeof given !== 'object' || given === null || Array.isArray(given))) return given;
    const values = { ...given } as Record<string, unknown>;
    for (const name of Object.keys(values)) {
      if (!allowed.has(name)) throw invalidField(name, 'cannot be sent with a session token');
    }
    for (const name of fields) fill(token, name, values);
    return given === undefined && Object.keys(values).length === 0 ? undefined : values;
  }

  return {
    narrow: (token, { params, query, body }) => ({
      params,
      query: filled(token, inQuery, query),
      body: route.body ? filled(token, inBody, body) : body,
    }),

    async enter(ctx, token, input) {
      for (const name of named) {
        const id = input[name];
        if (typeof id !== 'string') continue;
        // The most frequent case needs no look-up: whether the session still exists is for the route to find out.
        if (name === 'sessionId' && token.sessionId !== null && id === formatId('ses', token.sessionId)) continue;
        const { what, find } = reached[name]!;
        const rows = await ctx.db.query(find(ctx, token, id));
        if (rows.length === 0) throw notFound(what);
      }
    },
  };
}

/** Sets a field that the token decides, or throws 404 if the request has another value. */
function fill(token: TokenReach, name: string, values: Record<string, unknown>): void {
  const given = values[name];
  const { sessionId, agentId, environment, endUser } = token;
  switch (name) {
    case 'agentId':
      if (given !== undefined && given !== formatId('agt', agentId)) throw notFound('agent');
      values[name] = formatId('agt', agentId);
      return;
    case 'environment':
      if (given !== undefined && given !== environment) {
        throw new ApiError('not_found', `There is no environment "${String(given)}".`);
      }
      values[name] = environment;
      return;
    case 'endUser':
      if (given !== undefined && (given as { id?: unknown } | null)?.id !== endUser?.id) throw notFound('end user');
      values[name] = endUser;
      return;
    case 'endUserId':
      if (given !== undefined && given !== endUser?.id) throw notFound('end user');
      values[name] = endUser?.id;
      return;
    case 'sessionId':
      if (sessionId !== null) values[name] ??= formatId('ses', sessionId);
      else if (given === undefined) throw invalidField('sessionId', 'must name a session');
      return;
    default:
  }
}

function namesOf(schema: unknown): string[] {
  return Object.keys((schema as SchemaObject | undefined)?.properties ?? {});
}
