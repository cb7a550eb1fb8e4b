import type { RequestOptions, Transport } from '../transport.ts';
import type { EndUserDetails } from '../types.generated.ts';

/** The people for whom sessions are, by ids of your own. Permission `admin`. */
export class EndUsers {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Whether there are sessions for an end user, and how far its erasure is. */
  async get(endUserId: string, options?: RequestOptions): Promise<EndUserDetails> {
    return (await this.#transport.call('getEndUser', { params: { endUserId } }, options)).endUser;
  }

  /**
   * Starts to delete everything of an end user: sessions, forks, files and schedules. Resolves when it has started; `get` shows the
   * progress, and until it has finished, new sessions for the end user are refused.
   */
  async erase(endUserId: string, options?: RequestOptions): Promise<EndUserDetails> {
    return (await this.#transport.call('eraseEndUser', { params: { endUserId } }, options)).endUser;
  }
}
