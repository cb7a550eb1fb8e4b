/** One route, and the shapes of results that many routes share. */
import type { ErrorCode } from '../errors.ts';
import type { Permission } from '../keys.ts';
import { Id, type IdPrefix, type TSchema, Type } from '../schema.ts';

/** One operation of the interface. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below `/api/v1`, with `{name}` for parameters. */
  readonly path: string;
  /** What the caller's key must hold at least. */
  readonly permission: Permission;
  /** The heading under which it stands in the reference. */
  readonly tag: string;
  readonly summary: string;
  readonly params?: TSchema;
  readonly query?: TSchema;
  readonly body?: TSchema;
  /** Of the answer when all went well. */
  readonly status: 200 | 201 | 202;
  readonly result: TSchema;
  /**
   * `sse`: the answer is a stream of Server-Sent Events, each with a `result`. `export`: a file of any length, a `result` a
   * line, or the same as CSV.
   */
  readonly stream?: 'sse' | 'export';
  /** Codes particular to this route, beside those that every route can answer with. */
  readonly errors?: readonly ErrorCode[];
  /**
   * Sent again it does no more by itself, and no answer is stored for its `Idempotency-Key`: a long poll, whose transaction
   * would stay open, or what is called many times a second.
   */
  readonly repeatable?: true;
  /**
   * It acts outside of the database: where the service stopped in the middle, nobody knows whether it has, and the same
   * `Idempotency-Key` is refused until it expires.
   */
  readonly actsOutside?: true;
  /** Where in the result a plaintext secret stands: sealed in stored responses, absent from logs. */
  readonly reveals?: 'apiKey.secret' | 'signingSecret' | 'link';
  /** Only for a person who is signed in: a key that was stolen must not make people, who would stay when it is revoked. */
  readonly byPerson?: true;
  /** Also answered at the path without `/api/v1`, as the source writes it (section 4.3). */
  readonly alsoAtRoot?: true;
}

export const one = <N extends string, S extends TSchema>(name: N, schema: S) =>
  Type.Object({ [name]: schema } as Record<N, S>, { required: [name] });
export const deleted = <N extends string>(name: N, prefix: IdPrefix) =>
  Type.Object({ [name]: Id(prefix), deleted: Type.Literal(true) } as Record<N, ReturnType<typeof Id>> & {
    deleted: ReturnType<typeof Type.Literal<true>>;
  });

export const table = <const T extends Record<string, Route>>(routes: T) => routes;
