/** One route, and the shapes of results that many routes share. */
import type { ErrorCode } from '../errors.ts';
import { Id, type IdPrefix, type TSchema, Type } from '../schema.ts';
import type { Scope } from '../scopes.ts';
import type { TokenScope } from '../tokens.ts';

/** One operation of the API. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below `/api/v1`, with `{name}` for parameters. */
  readonly path: string;
  /** What the caller needs; `any`: only to be known. Its permission is derived from it (`permissionOf`). */
  readonly scope: Scope | 'any';
  /** What the caller needs in addition, for a route that does or shows what several scopes are for. */
  readonly alsoScope?: Scope | readonly Scope[];
  /** What a session token needs to use the route. Without it the route is a 404 for every token. */
  readonly token?: TokenScope;
  /** The fields of the query and the body that a token may send; others are refused. */
  readonly tokenFields?: readonly string[];
  /**
   * For keys that are limited to some agents. By default what the request names decides, and a route that names nothing of an agent is
   * closed to them. `own`: its function shows and takes only what belongs to the agents of the key. `open`: it concerns no agent. `closed`:
   * it concerns more than the agent that it names.
   */
  readonly agents?: 'own' | 'open' | 'closed';
  /** Closed to keys that are limited to some environments, although it names one: it does what changing an agent could. */
  readonly environments?: 'closed';
  /** Its heading in the API reference. */
  readonly tag: string;
  /** Its title in the API reference: a short imperative phrase. */
  readonly summary: string;
  /** What the title does not say, in Markdown. */
  readonly description?: string;
  readonly params?: TSchema;
  readonly query?: TSchema;
  readonly body?: TSchema;
  /** The body is the content of a file instead, of any type, and is read as it arrives. */
  readonly upload?: { readonly maxBytes: number };
  /** The status of a successful response. */
  readonly status: 200 | 201 | 202;
  readonly result: TSchema;
  /**
   * `sse`: Server-Sent Events, each with a `result`. `export`: a file of any length, with one `result` a line or as CSV.
   * `content`: bytes, of which a range can be requested.
   */
  readonly stream?: 'sse' | 'export' | 'content';
  /**
   * With `Accept: text/event-stream` the response is a stream instead: first the event `session` with the result, then the chunks of
   * the session in it, until that session is idle or has ended. The caller also needs what `streamSession` needs.
   */
  readonly canStream?: true;
  /** It creates or replaces by name; with `If-None-Match: *` it only creates, and 412 `precondition_failed` if there is one. */
  readonly canOnlyCreate?: true;
  /** Error codes in addition to those that every route can return. */
  readonly errors?: readonly ErrorCode[];
  /**
   * Repeating the request has no further effect, so no response is stored for its `Idempotency-Key`: for long polls, whose
   * transaction would stay open, and for calls that come many times a second.
   */
  readonly repeatable?: true;
  /**
   * It has an effect outside of the database. If the service stops in the middle, the outcome is unknown, so the same
   * `Idempotency-Key` is refused until it expires.
   */
  readonly actsOutside?: true;
  /**
   * It does what `route` does for each of the `ids` in its body, which are that route's `id`. What the key may reach, the checks, and the
   * effect of an `Idempotency-Key` are the same as on that route, for each of them.
   */
  readonly each?: { readonly route: string; readonly ids: string; readonly id: string };
  /** The field of the result with a plaintext secret: sealed in stored responses, never logged. */
  readonly reveals?: 'apiKey.secret' | 'signingSecret' | 'link' | 'token';
  /** Only for a user who is signed in: a stolen key could otherwise create users, who remain after it is revoked. */
  readonly byPerson?: true;
  /** Only for an API key: what it creates ends with that key. */
  readonly byKey?: true;
  /** Only for the operator of the installation, whose token belongs to no organization: a route of `operatorRoutes`. */
  readonly byOperator?: true;
  /** A key that is limited to some environments or agents may use it on itself, although it changes what they share. */
  readonly ownKey?: true;
  /** Also available without the prefix `/api/v1`. */
  readonly alsoAtRoot?: true;
}

/** `{ [name]: … }`: a result with one resource. */
export const one = <N extends string, S extends TSchema>(name: N, schema: S) =>
  Type.Object({ [name]: schema } as Record<N, S>, { required: [name] });
/** `{ [name]: id, deleted: true }`. */
export const deleted = <N extends string>(name: N, prefix: IdPrefix) =>
  Type.Object({ [name]: Id(prefix), deleted: Type.Literal(true) } as Record<N, ReturnType<typeof Id>> & {
    deleted: ReturnType<typeof Type.Literal<true>>;
  });

/** Checks each route and keeps its exact type, from which the types of inputs and results are derived. */
export const table = <const T extends Record<string, Route>>(routes: T) => routes;
