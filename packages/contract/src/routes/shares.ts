import { SessionParams } from '../sessions.ts';
import {
  CreatedSessionShare,
  CreateSessionShare,
  ListSessionShares,
  SessionSharePage,
  SessionShareParams,
} from '../shares.ts';
import { deleted, table } from './route.ts';

export const shareRoutes = table({
  createSessionShare: {
    method: 'POST',
    path: '/sessions/{sessionId}/shares',
    scope: 'sessions:run',
    tag: 'Sessions',
    summary: 'Share a session',
    description:
      'Creates a link by which anyone can read the conversation of this session, without signing in, until the link expires or is deleted. It shows messages and their files; tool calls only with `includesTools`; never metadata, the end user, the agent, usage or costs. The link is in this response only.',
    params: SessionParams,
    body: CreateSessionShare,
    status: 201,
    result: CreatedSessionShare,
    errors: ['conflict'],
    reveals: 'link',
  },
  listSessionShares: {
    method: 'GET',
    path: '/sessions/{sessionId}/shares',
    scope: 'sessions:read',
    tag: 'Sessions',
    summary: 'List the share links of a session',
    description: 'Links that have not expired, newest first.',
    params: SessionParams,
    query: ListSessionShares,
    status: 200,
    result: SessionSharePage,
  },
  deleteSessionShare: {
    method: 'DELETE',
    path: '/sessions/{sessionId}/shares/{shareId}',
    scope: 'sessions:run',
    tag: 'Sessions',
    summary: 'Revoke a share link',
    description: 'The link is invalid from then on, also for pages that are open.',
    params: SessionShareParams,
    status: 200,
    result: deleted('shareId', 'shr'),
  },
});
