// In place of a version, a draft has a number below zero (agents/drafts.ts).

/** Whether a session with this version, its own or that of a turn, runs a draft. */
export function isDraft(version: number | null): boolean {
  return version !== null && version < 0;
}

/** The version as the API shows it. */
export function shownVersion(version: number): number {
  return Math.max(0, version);
}

/** The agent of drafts without one, for which everything counts that drafts use. It is not listed. */
export function agentOfDrafts(organizationId: string): string {
  return organizationId;
}
