import { Event, EventPage, EventParams, ExportEvents, ListEvents } from '../events.ts';
import { one, table } from './route.ts';

export const eventRoutes = table({
  listEvents: {
    method: 'GET',
    path: '/events',
    scope: 'events:read',
    tag: 'Event log',
    summary: 'List events',
    description: 'Newest first by default. With `order=asc` and `wait`, waits for new records.',
    query: ListEvents,
    status: 200,
    result: EventPage,
    repeatable: true,
  },
  exportEvents: {
    method: 'GET',
    path: '/events/export',
    scope: 'events:read',
    tag: 'Event log',
    summary: 'Export events',
    description: 'The event log as one file, oldest first, up to the newest record when the export starts.',
    query: ExportEvents,
    status: 200,
    result: Event,
    stream: 'export',
  },
  getEvent: {
    method: 'GET',
    path: '/events/{eventId}',
    scope: 'events:read',
    tag: 'Event log',
    summary: 'Get an event',
    params: EventParams,
    status: 200,
    result: one('event', Event),
  },
});
