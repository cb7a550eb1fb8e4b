import { Event, EventPage, EventParams, ExportEvents, ListEvents } from '../events.ts';
import { one, table } from './route.ts';

export const eventRoutes = table({
  listEvents: {
    method: 'GET',
    path: '/events',
    permission: 'read',
    tag: 'Event log',
    summary: 'Read who changed what; with `wait`, as it happens',
    query: ListEvents,
    status: 200,
    result: EventPage,
    repeatable: true,
  },
  exportEvents: {
    method: 'GET',
    path: '/events/export',
    permission: 'read',
    tag: 'Event log',
    summary: 'Read all of it as one file, oldest first, up to the newest record when it began',
    query: ExportEvents,
    status: 200,
    result: Event,
    stream: 'export',
  },
  getEvent: {
    method: 'GET',
    path: '/events/{eventId}',
    permission: 'read',
    tag: 'Event log',
    summary: 'Read a record',
    params: EventParams,
    status: 200,
    result: one('event', Event),
    errors: ['insufficient_permission'],
  },
});
