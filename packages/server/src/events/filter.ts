// The filter language of the event log, for `GET /events` and for destinations: types, groups of types as `approval.*`, or all as `*`.
import { type EventType, eventTypes, eventTypesOf } from '@signalbox/contract';
import { invalidField } from '../lib/api-error.ts';

/** The types that the patterns stand for, each once; undefined if they are all. Throws a 400 that names the field. */
export function typesMatching(patterns: readonly string[], field: string): EventType[] | undefined {
  const types = new Set<EventType>();
  for (const pattern of patterns) {
    const found = eventTypesOf(pattern);
    if (found.length === 0) throw invalidField(field, `\`${pattern}\` ${reasonOf(pattern)}`);
    for (const type of found) types.add(type);
  }
  return types.size === eventTypes.length ? undefined : [...types];
}

/** Whether a type is one that the pattern stands for. Types that only a newer release knows match as well. */
export function isTypeOf(pattern: string, type: string): boolean {
  return pattern === '*' || pattern === type || (pattern.endsWith('.*') && type.startsWith(pattern.slice(0, -1)));
}

function reasonOf(pattern: string): string {
  if (!pattern.includes('*')) return 'is not a type of record';
  return 'matches no type of record; a pattern is the beginning of types up to a dot with `.*`, such as `approval.*`, or `*`';
}
