// The definition of an agent as JSON, as the editor changes it. While the user types it may have any shape: the contract's schema
// reports errors, and the form shows what it can.
import type { Agent, CreateAgent as CreateAgentBody } from '@signalbox/client';
import { agentDefaults, agentFields, CreateAgent, type FieldError } from '@signalbox/contract';
import { fieldErrors } from '@signalbox/contract/check';
import { isRecord, modelOf } from './model.ts';

export type Definition = Record<string, unknown>;

/** The definition of a saved version, without the fields that the service adds. */
export function definitionOf(agent: Agent): Definition {
  return Object.fromEntries(agentFields.map((field) => [field, agent[field]]));
}

/** With the default of each missing field. Without them, a field that is left out of an update would keep its value. */
export function whole(definition: Definition): Definition {
  return {
    ...agentDefaults,
    ...definition,
    ...(typeof definition.model === 'string' && { model: modelOf(definition.model) }),
    limits: isRecord(definition.limits)
      ? { ...agentDefaults.limits, ...definition.limits }
      : (definition.limits ?? agentDefaults.limits),
  };
}

/** The request body for a valid definition. */
export function bodyOf(definition: Definition): CreateAgentBody {
  return whole(definition) as unknown as CreateAgentBody;
}

/** The errors in a definition by field, as the service would report them. */
export function problemsOf(definition: Definition): FieldError[] {
  return fieldErrors(CreateAgent, definition);
}

/** The fields that differ, in the order of the form. */
export function changedFields(before: Definition, after: Definition): string[] {
  const [one, other] = [whole(before), whole(after)];
  return agentFields.filter((field) => !sameJson(one[field], other[field]));
}

/** Whether two values are the same JSON in any order of keys. */
export function sameJson(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
}

/** Sorts the keys of every object, so that equal values have equal texts. */
export function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key])]),
  );
}
