import type { EventType } from '@signalbox/client';
import { environmentPattern, sessionIdPattern, textIn } from '../../search-params.ts';

/** The filters, and the event that is open. */
export interface EventsSearch {
  type?: EventType;
  actorId?: string;
  resourceId?: string;
  sessionId?: string;
  environment?: string;
  since?: string;
  until?: string;
  event?: string;
}

const instantPattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$/;

export function eventsSearch(search: Record<string, unknown>): EventsSearch {
  return {
    // Only the page knows the types (event-text.ts); this file is part of the first load.
    ...(textIn(search, 'type', /^[a-z_]+\.[a-z_]+$/) as { type?: EventType }),
    ...textIn(search, 'actorId', /^.{1,100}$/),
    ...textIn(search, 'resourceId', /^.{1,200}$/),
    ...textIn(search, 'sessionId', sessionIdPattern),
    ...textIn(search, 'environment', environmentPattern),
    ...textIn(search, 'since', instantPattern),
    ...textIn(search, 'until', instantPattern),
    ...textIn(search, 'event', /^evt_[0-9a-z]{26}$/),
  };
}
