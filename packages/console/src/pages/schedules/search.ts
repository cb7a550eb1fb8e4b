import type { ScheduleRunStatus, ScheduleStatus } from '@signalbox/client';
import { oneOf, textIn } from '../../search.ts';

export interface SchedulesSearch {
  status?: ScheduleStatus;
  agentId?: string;
  environment?: string;
}

export function schedulesSearch(search: Record<string, unknown>): SchedulesSearch {
  return {
    ...oneOf(search, 'status', ['enabled', 'paused']),
    ...textIn(search, 'agentId', /^agt_[0-9a-z]{26}$/),
    ...textIn(search, 'environment', /^[a-z][a-z0-9_-]{0,62}$/),
  };
}

/** Which occurrences of a schedule are listed. */
export function scheduleSearch(search: Record<string, unknown>): { status?: ScheduleRunStatus } {
  return oneOf(search, 'status', ['opened', 'missed', 'failed']);
}
