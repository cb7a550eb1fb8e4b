import { SessionParams } from '../sessions.ts';
import { CreateEndUserToken, CreateSessionToken, SessionToken } from '../tokens.ts';
import { table } from './route.ts';

export const tokenRoutes = table({
  createSessionToken: {
    method: 'POST',
    path: '/sessions/{sessionId}/tokens',
    scope: 'sessions:run',
    tag: 'Session tokens',
    summary: 'Create a token for a session',
    description:
      'For the page of an end user: it reaches this session only. The token is in this response only, and it can do nothing that the key which creates it can not.',
    params: SessionParams,
    body: CreateSessionToken,
    status: 201,
    result: SessionToken,
    reveals: 'token',
    byKey: true,
  },
  createEndUserToken: {
    method: 'POST',
    path: '/session_tokens',
    scope: 'sessions:run',
    tag: 'Session tokens',
    summary: 'Create a token for an end user',
    description:
      'It reaches the sessions that this end user has with this agent in this environment; with the scope `open` it also opens them. The token is in this response only, and it can do nothing that the key which creates it can not.',
    body: CreateEndUserToken,
    status: 201,
    result: SessionToken,
    errors: ['not_found', 'agent_archived'],
    reveals: 'token',
    byKey: true,
  },
});
