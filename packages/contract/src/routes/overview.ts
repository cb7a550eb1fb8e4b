import { GetOverview, Overview } from '../overview.ts';
import { one, table } from './route.ts';

export const overviewRoutes = table({
  getOverview: {
    method: 'GET',
    path: '/overview',
    scope: 'usage:read',
    tag: 'Overview',
    summary: 'Get the overview',
    description: 'Counts for the organization or for one environment.',
    query: GetOverview,
    status: 200,
    result: one('overview', Overview),
  },
});
