// A change whose response is a stream: the caller gets the session and what it then does from one request, as from a model's API.
import type { IncomingHttpHeaders } from 'node:http';
import type { Session } from '@signalbox/contract';
import { beginning, parseCursor } from '../../journal/cursor.ts';
import { emptyStream, type JournalStream } from '../../journal/stream.ts';
import type { Context } from '../../lib/context.ts';
import { uuidOf } from '../../lib/ids.ts';

/** Whether the client prefers Server-Sent Events to JSON. */
export function acceptsEvents({ accept = '' }: IncomingHttpHeaders): boolean {
  const types = accept.split(',').map((type) => type.split(';', 1)[0]!.trim().toLowerCase());
  const events = types.indexOf('text/event-stream');
  const json = types.indexOf('application/json');
  return events !== -1 && (json === -1 || events < json);
}

/**
 * The chunks after the session in a response, until that session is idle or has ended. The response may be a repeated one, so the
 * session in it may be long past.
 */
export function eventsAfter(ctx: Context, { body }: { body: string }): JournalStream {
  const { session } = JSON.parse(body) as { session: Session };
  const { sessionId, agentId, environment, cursor, status } = session;
  if (status !== 'running' && status !== 'waiting') return emptyStream;
  const after = cursor === null ? beginning : parseCursor(cursor);
  const head = {
    organizationId: ctx.organizationId,
    sessionId: uuidOf('ses', sessionId),
    agentId: uuidOf('agt', agentId),
    environment,
    position: after,
    ended: false,
    nodeId: null,
  };
  return ctx.live.follow(head, after, { forToken: ctx.token !== undefined, untilIdle: true });
}
