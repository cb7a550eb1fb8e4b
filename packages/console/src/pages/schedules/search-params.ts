import type { ScheduleStatus } from '@signalbox/client';
import { agentIdPattern, environmentPattern, oneOf, textIn } from '../../lib/search-params.ts';

export interface SchedulesSearch {
  status?: ScheduleStatus;
  agentId?: string;
  environment?: string;
}

export function schedulesSearch(search: Record<string, unknown>): SchedulesSearch {
  return {
    ...oneOf(search, 'status', ['enabled', 'paused']),
    ...textIn(search, 'agentId', agentIdPattern),
    ...textIn(search, 'environment', environmentPattern),
  };
}

/** The filter of a schedule's runs; `failed`: they opened no session, or it failed. */
export function scheduleSearch(search: Record<string, unknown>): { status?: 'failed' | 'missed' } {
  return oneOf(search, 'status', ['failed', 'missed'] as const);
}
