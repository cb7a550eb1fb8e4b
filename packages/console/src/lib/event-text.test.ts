import type { Event } from '@signalbox/client';
import { eventTypes } from '@signalbox/contract';
import { expect, test } from 'vitest';
import { actionText, eventKinds, eventText } from './event-text.ts';

const record = (more: Partial<Event>): Event => ({
  eventId: 'evt_1',
  sequence: 1,
  type: 'session.created',
  occurredAt: '2026-11-21T10:00:00.000Z',
  outcome: 'success',
  actor: { type: 'user', id: 'usr_1', name: 'Olga' },
  resource: { type: 'session', id: 'ses_1' },
  environment: null,
  sessionId: null,
  changes: null,
  context: { requestId: null, ipAddress: null, userAgent: null },
  previousHash: '',
  hash: '',
  ...more,
});

test('every event type has a text', () => {
  expect(Object.keys(eventKinds).sort()).toEqual([...eventTypes].sort());
  for (const type of eventTypes) expect(eventText(record({ type })), type).not.toContain(type);
});

test('an event text says who did what, with the detail that identifies it', () => {
  const system = { type: 'system' as const, id: null, name: 'Signalbox' };
  expect(eventText(record({ type: 'api_key.created', changes: { name: [null, 'billing'] } }))).toBe(
    'Olga created an API key: billing',
  );
  expect(eventText(record({ type: 'approval.resolved', changes: { status: ['pending', 'denied'] } }))).toBe(
    'Olga resolved an approval: denied',
  );
  expect(
    eventText(record({ type: 'approval.resolved', actor: system, changes: { status: ['pending', 'expired'] } })),
  ).toBe('An approval was resolved: expired');
  expect(eventText(record({ type: 'user.role_changed', changes: { role: ['viewer', 'admin'] } }))).toBe(
    "Olga changed a member's role: viewer → admin",
  );
  expect(eventText(record({ type: 'user.joined', changes: { name: [null, 'Olga'], role: [null, 'owner'] } }))).toBe(
    'Olga joined: owner',
  );
  const hotel = { type: 'tool_server' as const, id: 'agt_1/hotel' };
  const reason = 'HTTP 503: back soon';
  expect(
    eventText(
      record({ type: 'tool_server.unavailable', actor: system, resource: hotel, changes: { reason: [null, reason] } }),
    ),
  ).toBe('The tools of an MCP server are unavailable: hotel, HTTP 503: back soon');
  expect(
    eventText(
      record({ type: 'tool_server.available', actor: system, resource: hotel, changes: { reason: [reason, null] } }),
    ),
  ).toBe('The tools of an MCP server are available again: hotel');
  const kept = (days: (number | null)[]) =>
    eventText(
      record({ type: 'environment.updated', environment: 'staging', changes: { keepSessionsDays: days as never } }),
    );
  expect(kept([null, 1])).toBe('Olga changed an environment: staging, keeps ended sessions for 1 day');
  expect(kept([1, null])).toBe('Olga changed an environment: staging, keeps ended sessions for the operator’s default');
  const limit = { model: '*', requestsPerMinute: 60, tokensPerMinute: null };
  const limited = (modelLimits: unknown[]) =>
    eventText(
      record({ type: 'environment.updated', environment: 'staging', changes: { modelLimits: modelLimits as never } }),
    );
  expect(limited([[], [limit]])).toBe('Olga changed an environment: staging, has 1 limit for models');
  expect(limited([[limit], []])).toBe('Olga changed an environment: staging, has no limits for models');
});

test('an event about an agent or a budget says which, and a change what was changed', () => {
  const agent = { type: 'agent' as const, id: 'agt_1' };
  const names = new Map([['agt_1', 'Support']]);
  const changed = (changes: Event['changes']) =>
    eventText(record({ type: 'agent.updated', resource: agent, changes }), names);
  expect(changed({ version: [1, 2], instructions: ['a', 'b'], outputSchema: [null, {}] })).toBe(
    'Olga changed an agent: Support, instructions, output schema',
  );
  expect(changed({ version: [1, 2], name: ['Support', 'Help'] })).toBe('Olga changed an agent: Help, name');
  expect(changed({ version: [1, 2], a: [1, 2], b: [1, 2], c: [1, 2], d: [1, 2] })).toBe(
    'Olga changed an agent: Support, 4 fields',
  );
  expect(actionText(record({ type: 'agent.updated', resource: agent }))).toBe('Changed an agent');
  expect(actionText(record({ type: 'agent.archived', resource: agent }), names)).toBe('Archived an agent: Support');
  const budget = { type: 'budget' as const, id: 'monthly' };
  const system = { type: 'system' as const, id: null, name: 'Signalbox' };
  const reached = { type: 'budget.threshold_reached' as const, actor: system, resource: budget };
  expect(eventText(record({ ...reached, changes: { threshold: [null, 80] } }))).toBe(
    'A budget reached a threshold: monthly, 80%',
  );
  const webhook = { type: 'webhook_subscription.updated' as const, environment: 'staging' };
  expect(actionText(record({ ...webhook, changes: { url: ['a', 'b'] } }))).toBe(
    'Changed a webhook subscription: staging, url',
  );
});

test('what happens in a session names its agent and the reason; next to the actor, the text does not repeat it', () => {
  const actor = { type: 'agent' as const, id: 'agt_1', name: 'Refund desk' };
  const failed = record({ type: 'session.failed', actor, changes: { error: [null, 'model_key_missing'] } });
  expect(eventText(failed)).toBe('A session failed: Refund desk, model_key_missing');
  expect(actionText(failed)).toBe('A session failed: model_key_missing');
  expect(eventText(record({ type: 'session.waiting', actor }))).toBe('A session is waiting: Refund desk');
  expect(actionText(record({ type: 'api_key.created', changes: { name: [null, 'billing'] } }))).toBe(
    'Created an API key: billing',
  );
  for (const type of eventTypes) expect(actionText(record({ type })), type).not.toContain('Olga');
});

test('an event type from a newer service is shown as is', () => {
  expect(eventText(record({ type: 'moon.landed' as Event['type'] }))).toBe('Olga: moon.landed');
});
