import { GetOverview, Overview } from '../overview.ts';
import { one, table } from './route.ts';

export const overviewRoutes = table({
  getOverview: {
    method: 'GET',
    path: '/overview',
    permission: 'read',
    tag: 'Overview',
    summary: 'Read what goes on now, in a few numbers: of the organization, or of one Environment',
    query: GetOverview,
    status: 200,
    result: one('overview', Overview),
  },
});
