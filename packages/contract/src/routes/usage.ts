import { GetUsage, UsageReport } from '../usage.ts';
import { table } from './route.ts';

export const usageRoutes = table({
  getUsage: {
    method: 'GET',
    path: '/usage',
    permission: 'read',
    tag: 'Usage',
    summary: 'Read what the organization used, in whole days of UTC',
    query: GetUsage,
    status: 200,
    result: UsageReport,
  },
});
