import type { EventFilters, EventType } from '@signalbox/client';
import { agentIdPattern, environmentPattern, oneOf, sessionIdPattern, textIn } from '../../lib/search-params.ts';
import { currentTime } from '../../ui/time.tsx';
import { type Range, readRange, timesOf } from '../../ui/time-range.tsx';

export const eventGroups = ['failures', 'changes', 'access', 'approvals'] as const;
export type EventGroup = (typeof eventGroups)[number];

/** The filters, and the event that is open. */
export interface EventsSearch {
  /** Types that belong together, unless `type` names one. */
  group?: EventGroup;
  type?: EventType;
  actorId?: string;
  resourceId?: string;
  sessionId?: string;
  agentId?: string;
  environment?: string;
  range?: Range;
  event?: string;
}

export function eventsSearch(search: Record<string, unknown>): EventsSearch {
  // Links of earlier releases have the two times apart.
  const { since = '', until = '' } = search;
  const range = readRange(search.range) ?? readRange(`${since}/${until}`);
  return {
    ...oneOf(search, 'group', eventGroups),
    // Only the page knows the types (lib/event-text.ts); this file is part of the first load.
    ...(textIn(search, 'type', /^[a-z_]+\.[a-z_]+$/) as { type?: EventType }),
    ...textIn(search, 'actorId', /^.{1,100}$/),
    ...textIn(search, 'resourceId', /^.{1,200}$/),
    ...textIn(search, 'sessionId', sessionIdPattern),
    ...textIn(search, 'agentId', agentIdPattern),
    ...textIn(search, 'environment', environmentPattern),
    ...(range && { range }),
    ...textIn(search, 'event', /^evt_[0-9a-z]{26}$/),
  };
}

/** The filters of the API. The presets of a range end now. */
export function filtersOf(
  { group, type, range, event: _, ...others }: EventsSearch,
  typesOf: (group: EventGroup) => readonly EventType[],
): EventFilters {
  const types = type ?? (group && typesOf(group));
  return { ...others, ...(types && { type: types }), ...(range && timesOf(range, currentTime())) };
}
