// Which records a destination receives, and in which order.
import type { Event } from '@signalbox/contract';
import { isTypeOf } from '../../events/filter.ts';
import { formatId } from '../../lib/ids.ts';
import type { DestinationAssignment } from './assignments.ts';

/** A record as the reader has it: the hashes are read when it is sent. */
export type LoggedEvent = Omit<Event, 'previousHash' | 'hash'>;

type Filter = Pick<DestinationAssignment, 'destinationId' | 'eventTypes' | 'environment' | 'agentIds'>;

/**
 * Whether the destination receives the record. Never one about itself: its failure would cause a delivery that fails. While it is failing,
 * none about the health of others, or two that fail would keep each other busy.
 */
export function receives(
  { destinationId, eventTypes, environment, agentIds }: Filter,
  event: LoggedEvent,
  isFailing: boolean,
): boolean {
  // First, because it leaves out most records of most destinations.
  if (!hasType(eventTypes, event.type)) return false;
  if (isAbout(event, destinationId) || (isFailing && isHealth(event))) return false;
  if (environment !== null && event.environment !== environment) return false;
  return !agentIds || (event.agentId !== undefined && agentIds.has(event.agentId));
}

// By the patterns of an assignment: whether they have a type. Every record is compared with every destination.
const known = new WeakMap<readonly string[], Map<string, boolean>>();

function hasType(patterns: readonly string[], type: string): boolean {
  const types = known.get(patterns);
  if (!types) {
    known.set(patterns, new Map());
    return hasType(patterns, type);
  }
  const has = types.get(type);
  if (has !== undefined) return has;
  types.set(
    type,
    patterns.some((pattern) => isTypeOf(pattern, type)),
  );
  return hasType(patterns, type);
}

/** Whether it is the record of the destination's creation: the destination receives what follows it. */
export function isCreation(event: LoggedEvent, destinationId: string): boolean {
  return event.type === 'destination.created' && isAbout(event, destinationId);
}

/** What is sent in order: the records of one session, or of one resource that belongs to none. */
export function laneOf({ sessionId, resource }: Pick<Event, 'sessionId' | 'resource'>): string {
  return sessionId === null ? `${resource.type}:${resource.id}` : `session:${sessionId}`;
}

export function resourceOfLane(lane: string): { type: string; id: string } {
  const at = lane.indexOf(':');
  return { type: lane.slice(0, at), id: lane.slice(at + 1) };
}

function isAbout({ resource }: LoggedEvent, destinationId: string): boolean {
  return resource.type === 'destination' && resource.id === formatId('dst', destinationId);
}

function isHealth({ type }: LoggedEvent): boolean {
  return type === 'destination.degraded' || type === 'destination.disabled';
}
