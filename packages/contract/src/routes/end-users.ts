import { EndUserDetails, EndUserParams } from '../end-users.ts';
import { one, table } from './route.ts';

export const endUserRoutes = table({
  getEndUser: {
    method: 'GET',
    path: '/end_users/{endUserId}',
    scope: 'organization:manage',
    tag: 'End users',
    summary: 'Get an end user',
    description: 'Whether there are sessions for an end user, and how far its erasure is. Percent-encode the id.',
    params: EndUserParams,
    status: 200,
    result: one('endUser', EndUserDetails),
  },
  eraseEndUser: {
    method: 'DELETE',
    path: '/end_users/{endUserId}',
    scope: 'organization:manage',
    tag: 'End users',
    summary: 'Erase an end user',
    description:
      'Starts to delete all sessions, forks, child sessions, files and schedules of an end user, with everything that belongs to them. Open sessions are cancelled first. Until it has finished, new sessions for the end user are refused with 409 `conflict`. While it is running, this route only shows its progress.',
    params: EndUserParams,
    status: 202,
    result: one('endUser', EndUserDetails),
  },
});
