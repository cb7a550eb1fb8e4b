// What the editor edits: an Agent's definition as JSON. While somebody types, it may have any shape: what is wrong with it is for
// the contract's schema to say, and the form shows what it can.
import type { Agent, CreateAgent as CreateAgentBody } from '@signalbox/client';
import { agentDefaults, agentFields, CreateAgent, type FieldError } from '@signalbox/contract';
import { fieldErrors } from '@signalbox/contract/check';
import { isRecord, modelOf } from './model.ts';

export type Definition = Record<string, unknown>;

/** What a saved version holds, without what the service adds. */
export function definitionOf(agent: Agent): Definition {
  return Object.fromEntries(agentFields.map((field) => [field, agent[field]]));
}

/** With what the service puts where a field is left out: so that leaving it out also does so in an Agent that had it. */
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

/** The body of a request, of a definition in which nothing is wrong. */
export function bodyOf(definition: Definition): CreateAgentBody {
  return whole(definition) as unknown as CreateAgentBody;
}

/** What is wrong with a definition, field by field, as the service would say it. */
export function problemsOf(definition: Definition): FieldError[] {
  return fieldErrors(CreateAgent, definition);
}

/** The fields that differ, in the order of the form. */
export function changedFields(before: Definition, after: Definition): string[] {
  const [one, other] = [whole(before), whole(after)];
  return agentFields.filter((field) => !sameJson(one[field], other[field]));
}

/** The same JSON, in whatever order its keys are. */
export function sameJson(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
}

/** With the keys of every object in order, so that equal values are equal texts. */
export function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key])]),
  );
}
