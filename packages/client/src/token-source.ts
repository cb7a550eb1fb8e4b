/** The session token of a client: requested when a call needs one, shared by calls, and replaced when the service refuses it. */
import { ConnectionError } from './errors.ts';

/** Gets a session token (`sbt_…`) from your own server. */
export type GetToken = () => string | Promise<string>;

export class TokenSource {
  readonly #get: GetToken;
  #current: Promise<string> | undefined;

  constructor(get: GetToken) {
    this.#get = get;
  }

  /** The current token. Calls at the same time request one together. */
  async token(): Promise<string> {
    this.#current ??= this.#request();
    const current = this.#current;
    try {
      return await current;
    } catch (error) {
      if (this.#current === current) this.#current = undefined;
      throw error;
    }
  }

  /** The service has refused this token: the next call requests another one, unless one has done so already. */
  async refused(token: string): Promise<void> {
    const current = this.#current;
    if ((await current?.catch(() => undefined)) === token && this.#current === current) this.#current = undefined;
  }

  async #request(): Promise<string> {
    let token: unknown;
    try {
      token = await this.#get();
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new ConnectionError({ status: 0, code: 'token_unavailable', detail: `No session token: ${reason}`, cause });
    }
    // Checked here, because fetch would put an invalid header value, a secret, into its error message.
    if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) {
      throw new TypeError('token must return a session token: printable ASCII without spaces or line ends');
    }
    return token;
  }
}
