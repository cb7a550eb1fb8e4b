import { expect, test } from 'vitest';
import { eventKinds } from '../../lib/event-text.ts';
import { groupTypes } from './event-groups.ts';

// A new type of event goes into a view, or is added here deliberately.
test('every event is in a view, except those of the usual course of sessions, schedules, deliveries, models and budgets', () => {
  const inViews = new Set<string>(Object.values(groupTypes).flat());
  expect(Object.keys(eventKinds).filter((type) => !inViews.has(type))).toEqual([
    'agent.tool_tested',
    'session.created',
    'session.forked',
    'session.updated',
    'session.interrupted',
    'session.retried',
    'session.compaction_requested',
    'session.closing',
    'session.waiting',
    'session.idle',
    'session.completed',
    'session.cancelled',
    'file.created',
    'tool_server.available',
    'schedule.opened',
    'webhook_subscription.secret_confirmed',
    'webhook_delivery.resent',
    'webhook_delivery.recovered',
    'destination.secret_confirmed',
    'destination.recovered',
    'budget.threshold_reached',
    'model.ending',
  ]);
});
