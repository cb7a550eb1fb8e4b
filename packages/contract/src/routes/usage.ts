import { GetUsage, UsageReport } from '../usage.ts';
import { table } from './route.ts';

export const usageRoutes = table({
  getUsage: {
    method: 'GET',
    path: '/usage',
    scope: 'usage:read',
    tag: 'Usage',
    summary: 'Get usage',
    description: 'Tokens, model calls and cost of whole UTC days.',
    query: GetUsage,
    status: 200,
    result: UsageReport,
  },
});
