// How much a node may run: limits on active sessions, on those of one organization, and on the bytes of their transcripts, which
// stay in memory while a session is active.

export interface RoomOptions {
  maxSessions: number;
  maxSessionsOfOrganization: number;
  maxBytes: number;
}

export class Room {
  readonly #options: RoomOptions;
  readonly #sessionsOf = new Map<string, number>();
  #sessions = 0;
  #bytes = 0;

  constructor(options: RoomOptions) {
    this.#options = options;
  }

  /** Returns a function that leaves; a second call of it does nothing. */
  enter(organizationId: string, bytes: number): () => void {
    this.#add(organizationId, 1, bytes);
    let isIn = true;
    return () => {
      if (isIn) this.#add(organizationId, -1, -bytes);
      isIn = false;
    };
  }

  #add(organizationId: string, sessions: number, bytes: number): void {
    this.#sessions += sessions;
    this.#bytes += bytes;
    const count = (this.#sessionsOf.get(organizationId) ?? 0) + sessions;
    if (count === 0) this.#sessionsOf.delete(organizationId);
    else this.#sessionsOf.set(organizationId, count);
  }

  /** For sessions of the organization. */
  leftFor(organizationId: string): number {
    return Math.min(this.left(), this.#options.maxSessionsOfOrganization - (this.#sessionsOf.get(organizationId) ?? 0));
  }

  /** Organizations at their limit. */
  full(): string[] {
    const { maxSessionsOfOrganization } = this.#options;
    return [...this.#sessionsOf].flatMap(([id, count]) => (count >= maxSessionsOfOrganization ? [id] : []));
  }

  /** For sessions whose transcripts have the average length of the active ones. */
  left(): number {
    const { maxSessions, maxBytes } = this.#options;
    const bytesLeft = maxBytes - this.#bytes;
    if (bytesLeft <= 0) return 0;
    const average = this.#bytes / Math.max(1, this.#sessions);
    const byBytes = average === 0 ? maxSessions : Math.max(1, Math.floor(bytesLeft / average));
    return Math.min(maxSessions - this.#sessions, byBytes);
  }
}
