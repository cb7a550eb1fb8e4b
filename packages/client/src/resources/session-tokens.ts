import type { RequestOptions, Transport } from '../transport.ts';
import type { CreateEndUserToken, SessionToken } from '../types.generated.ts';

/** Tokens for the browsers of end users. `sessions.createToken` creates one for a single session. */
export class SessionTokens {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Creates a token that reaches the sessions of one end user with one agent in one environment; with the scope `open` it also opens
   * them. It ends when it expires, and when the key that created it is rotated or deleted. Needs an API key with `write`.
   *
   * @throws NotFoundError if the agent or the environment does not exist
   */
  create(params: CreateEndUserToken, options?: RequestOptions): Promise<SessionToken> {
    return this.#transport.call('createEndUserToken', { body: params }, options);
  }
}
