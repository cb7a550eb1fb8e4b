// In place of a version, a draft has a number below zero (agents/drafts.ts).
import sql, { type Sql } from 'sql-template-tag';

/** Whether a session with this version, its own or that of a turn, runs a draft. */
export function isDraft(version: number | null): boolean {
  return version !== null && version < 0;
}

/** The version as the API shows it. */
export function shownVersion(version: number): number {
  return Math.max(0, version);
}

/**
 * The agent of drafts, in the tables of usage: what drafts of an agent use is apart from what its versions use, and a budget of the agent
 * counts both. Ids of agents are UUIDs of version 7; this is the same one with version 8.
 */
export function draftsOf(agentId: string): string {
  return `${agentId.slice(0, 14)}8${agentId.slice(15)}`;
}

/** `draftsOf` in SQL. */
export function draftsOfColumn(agentId: Sql): Sql {
  return sql`overlay(${agentId}::text placing '8' from 15)::uuid`;
}

/** Whether a column has the agent of drafts. */
export function isOfDrafts(agentId: Sql): Sql {
  return sql`(substr(${agentId}::text, 15, 1) = '8')`;
}
