// The newest version of each agent as this node last saw it, so that a session can be opened without reading it first. It may be old:
// the statement that uses it fails if the agent has another version now.

// Only bounds memory.
const MAX_AGENTS = 10_000;

export class KnownVersions {
  readonly #versions = new Map<string, number>();

  of(organizationId: string, agentId: string): number | undefined {
    return this.#versions.get(`${organizationId} ${agentId}`);
  }

  remember(organizationId: string, agentId: string, version: number): void {
    const key = `${organizationId} ${agentId}`;
    if (!this.#versions.has(key) && this.#versions.size >= MAX_AGENTS)
      this.#versions.delete(this.#versions.keys().next().value!);
    this.#versions.set(key, version);
  }

  forget(organizationId: string, agentId: string): void {
    this.#versions.delete(`${organizationId} ${agentId}`);
  }
}
