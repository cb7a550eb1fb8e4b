/**
 * The race of keep-alive: a server closes an idle connection at the moment at which the next request is sent on it. The request then ends
 * with a reset, before a byte of the response. Whether the server has read it can't be known: undici reports what was written to the
 * socket, not what the other end took from it.
 *
 * A request that may run twice is therefore sent once more, on a connection that is new, if its connection had carried another request
 * before. On a new connection a reset has another cause, so it is returned.
 */
import type { Dispatcher } from 'undici';
import type { Connection } from './connections.ts';
import { toEgressError } from './errors.ts';

/** As `dispatch` of undici. `isRepeatable`: the request may run twice, and its body can be sent twice. */
export function dispatchOn(
  { client, isReused }: Connection,
  options: Dispatcher.DispatchOptions,
  handler: Dispatcher.DispatchHandler,
  isRepeatable: boolean,
): void {
  client.dispatch(options, isRepeatable && isReused ? new Repeating(client, options, handler) : handler);
}

class Repeating implements Dispatcher.DispatchHandler {
  readonly #client: Dispatcher;
  readonly #options: Dispatcher.DispatchOptions;
  readonly #handler: Dispatcher.DispatchHandler;
  #hasResponse = false;

  constructor(client: Dispatcher, options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler) {
    this.#client = client;
    this.#options = options;
    this.#handler = handler;
  }

  onRequestStart: Required<Dispatcher.DispatchHandler>['onRequestStart'] = (...given) => {
    this.#handler.onRequestStart?.(...given);
  };

  onResponseStart: Required<Dispatcher.DispatchHandler>['onResponseStart'] = (...given) => {
    this.#hasResponse = true;
    this.#handler.onResponseStart?.(...given);
  };

  onResponseData: Required<Dispatcher.DispatchHandler>['onResponseData'] = (...given) => {
    this.#handler.onResponseData?.(...given);
  };

  onResponseEnd: Required<Dispatcher.DispatchHandler>['onResponseEnd'] = (...given) => {
    this.#handler.onResponseEnd?.(...given);
  };

  onResponseError: Required<Dispatcher.DispatchHandler>['onResponseError'] = (controller, error) => {
    if (this.#hasResponse || toEgressError(error).kind !== 'reset') {
      this.#handler.onResponseError?.(controller, error);
      return;
    }
    // A client has one connection at a time. It opens another for this request, once it has dropped the one that was closed.
    queueMicrotask(() => this.#client.dispatch(this.#options, this.#handler));
  };
}
