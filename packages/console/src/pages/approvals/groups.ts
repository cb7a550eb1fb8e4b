// Approvals in groups: calls of one tool by one agent, in the order of their oldest.
import type { Approval } from '@signalbox/client';
import { isFields } from './input-draft.ts';

export interface ApprovalGroup {
  key: string;
  name: string;
  agentId: string;
  approvals: readonly Approval[];
}

/** `approvals`: oldest first. */
export function groupsOf(approvals: readonly Approval[]): ApprovalGroup[] {
  const groups = new Map<string, Approval[]>();
  for (const approval of approvals) {
    const key = `${approval.agentId} ${approval.name}`;
    groups.set(key, [...(groups.get(key) ?? []), approval]);
  }
  return [...groups].map(([key, all]) => ({ key, name: all[0]!.name, agentId: all[0]!.agentId, approvals: all }));
}

/** The inputs of calls side by side: which fields have the same value in all of them, and which differ. */
export interface Differences {
  same: readonly (readonly [field: string, value: unknown])[];
  differing: readonly string[];
}

/** Undefined if an input is not an object: they have no fields to compare. */
export function differencesOf(inputs: readonly unknown[]): Differences | undefined {
  if (!inputs.every(isFields)) return undefined;
  const fields = [...new Set(inputs.flatMap((input) => Object.keys(input)))];
  const texts = (field: string) => new Set(inputs.map((input) => JSON.stringify(input[field])));
  const differing = fields.filter((field) => texts(field).size > 1);
  const same = fields.filter((field) => !differing.includes(field)).map((field) => [field, inputs[0]![field]] as const);
  return { same, differing };
}

/** An input in one line: `order 1042 · cents 9900`. */
export function inputLine(input: unknown): string {
  if (!isFields(input)) return valueLine(input);
  return Object.entries(input)
    .map(([field, value]) => `${field} ${valueLine(value)}`)
    .join(' · ');
}

// A row shows less of it anyway.
const MAX_CHARACTERS = 200;

export function valueLine(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  const line = text.replaceAll(/\s+/g, ' ');
  return line.length > MAX_CHARACTERS ? `${line.slice(0, MAX_CHARACTERS)}…` : line;
}
