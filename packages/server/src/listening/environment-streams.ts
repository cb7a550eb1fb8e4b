// The live stream of an environment: what webhooks would deliver from now on, for a program without a public address.
//
// A listener has nothing in the database and does not touch the environment's subscription. It is a loop in the node that the client is
// connected to (reader.ts). Its cursor is a time: every chunk that was committed before it has been sent. A client that reconnects, to
// any node, gets the chunks since then, of which it may know some.
import { type ChunkType, defaultChunkTypes, type Input } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { type JournalStream, type StreamPart, streamOf } from '../journal/stream.ts';
import { ApiError, notFound } from '../lib/api-error.ts';
import type { Context, PoolContext } from '../lib/context.ts';
import { uuidOf } from '../lib/ids.ts';
import { type Listener, type ReaderPlatform, readEnvironment } from './reader.ts';

export interface EnvironmentStreams {
  /** Throws 429 `rate_limited` if the organization has its maximum on this node. The stream has its place while it is read. */
  open(listener: Listener): JournalStream;
}

// Each listener reads every session of its environment. A developer has one or two; more would slow down the others' reads.
const MAX_OF_ORGANIZATION = 20;

export function createEnvironmentStreams(platform: ReaderPlatform): EnvironmentStreams {
  const openOf = new Map<string, number>();

  async function* counted(listener: Listener, signal: AbortSignal): AsyncGenerator<StreamPart> {
    const { organizationId } = listener;
    openOf.set(organizationId, (openOf.get(organizationId) ?? 0) + 1);
    try {
      yield* readEnvironment(platform, listener, signal);
    } finally {
      const left = openOf.get(organizationId)! - 1;
      if (left > 0) openOf.set(organizationId, left);
      else openOf.delete(organizationId);
    }
  }

  return {
    open(listener) {
      if ((openOf.get(listener.organizationId) ?? 0) >= MAX_OF_ORGANIZATION) {
        throw new ApiError(
          'rate_limited',
          `The organization has ${MAX_OF_ORGANIZATION} streams of environments open on this node, which is the limit.`,
          { retryAfterSeconds: 5 },
        );
      }
      return streamOf((signal) => counted(listener, signal));
    },
  };
}

/** 404 if there is no such environment, 400 `invalid_cursor`. */
export async function streamEnvironment(ctx: PoolContext, input: Input<'streamEnvironment'>): Promise<JournalStream> {
  const { organizationId } = ctx;
  const since = timeOf(input.cursor, ctx.clock.now());
  const chunkTypes = input.types?.split(',') as ChunkType[] | undefined;
  const subscribed = await readChunkTypes(ctx, input.env);
  return ctx.environmentStreams.open({
    organizationId,
    environment: input.env,
    agentId: input.agentId === undefined ? undefined : uuidOf('agt', input.agentId),
    chunkTypes: chunkTypes ?? subscribed ?? defaultChunkTypes,
    since,
    isResumed: input.cursor !== undefined,
  });
}

/** The chunk types of the environment's subscription, if it has one. */
async function readChunkTypes({ db, organizationId }: Context, environment: string): Promise<ChunkType[] | null> {
  const [row] = await db.query<{ chunkTypes: ChunkType[] | null }>(sql`
    select w.chunk_types as "chunkTypes" from environments e
    left join webhook_subscriptions w on w.organization_id = e.organization_id and w.environment = e.name
    where e.organization_id = ${organizationId} and e.name = ${environment}`);
  if (!row) throw notFound('environment');
  return row.chunkTypes;
}

/** The header `Last-Event-ID` replaces the query's cursor after that was validated, so it is read with the same care. */
function timeOf(cursor: string | undefined, now: Date): Date {
  if (cursor === undefined) return now;
  const time = new Date(cursor);
  if (!/^\d{4}-\d\d-\d\dT/.test(cursor) || Number.isNaN(time.getTime())) {
    throw new ApiError('invalid_cursor', 'cursor: is not a time. Send the ID of an event of this stream, or a time.', {
      errors: [{ path: 'cursor', message: 'is not a time' }],
    });
  }
  // The clock of the node that it came from may be ahead. PostgreSQL has no year 0.
  return new Date(Math.min(Math.max(time.getTime(), 0), now.getTime()));
}
