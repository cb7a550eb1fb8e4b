import { Analytics, GetAnalytics } from '../analytics.ts';
import { table } from './route.ts';

export const analyticsRoutes = table({
  getAnalytics: {
    method: 'GET',
    path: '/analytics',
    scope: 'usage:read',
    tag: 'Analytics',
    summary: 'Get analytics',
    description:
      'Sessions, turns, errors, latencies, deliveries and cost over time, and in the period before. What drafts do is not counted. Counts arrive some seconds late.',
    query: GetAnalytics,
    status: 200,
    result: Analytics,
  },
});
