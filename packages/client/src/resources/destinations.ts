import { PageRequest } from '../page.ts';
import type { Query, RequestOptions, Result, Transport } from '../transport.ts';
import type {
  CreateDestination,
  CreatedDestination,
  Destination,
  DestinationDelivery,
  DestinationDeliveryWithAttempts,
  RecoverDestination,
  RotatedSecret,
  RotateSecret,
  UpdateDestination,
  WebhookAttempt,
} from '../types.generated.ts';

/**
 * Destinations: where records of the event log are sent as they are written. Reading needs `read`, changing `write`. What arrives is
 * verified with a library for Standard Webhooks; `webhooks.verify` takes chunks only.
 */
export class Destinations {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Newest first. */
  list(params: Query<'listDestinations'> = {}, options?: RequestOptions): PageRequest<Destination> {
    return new PageRequest(
      (cursor) => this.#transport.call('listDestinations', { query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /**
   * Creates a destination, which receives what is recorded from then on. `signingSecret` is in this response only: store it.
   *
   * @throws BadRequestError if a type of record does not exist
   * @throws NotFoundError if the environment or an agent does not exist
   * @throws ConflictError `conflict` if there are 100 already
   * @throws UnprocessableError `url_not_allowed`
   */
  create(params: CreateDestination, options?: RequestOptions): Promise<CreatedDestination> {
    return this.#transport.call('createDestination', { body: params }, options);
  }

  /** @throws NotFoundError */
  async get(destinationId: string, options?: RequestOptions): Promise<Destination> {
    return (await this.#transport.call('getDestination', { params: { destinationId } }, options)).destination;
  }

  /**
   * Changes what it receives and where, pauses or resumes. What was recorded while it was paused is then sent. Another host deletes
   * the headers, unless new ones are given. Not retried after a lost connection.
   *
   * @throws UnprocessableError `url_not_allowed`
   */
  async update(destinationId: string, params: UpdateDestination, options?: RequestOptions): Promise<Destination> {
    return (await this.#transport.call('updateDestination', { params: { destinationId }, body: params }, options))
      .destination;
  }

  /** Nothing more is sent to it. */
  delete(destinationId: string, options?: RequestOptions): Promise<Result<'deleteDestination'>> {
    return this.#transport.call('deleteDestination', { params: { destinationId } }, options);
  }

  /**
   * Creates a new `signingSecret`, which is in this response only. The previous one remains valid for `gracePeriodSeconds` (0
   * to 604,800; default 86,400): configure the receiver with both until then.
   */
  rotateSecret(destinationId: string, params: RotateSecret = {}, options?: RequestOptions): Promise<RotatedSecret> {
    return this.#transport.call('rotateDestinationSecret', { params: { destinationId }, body: params }, options);
  }

  /** Sends a made-up record now, and returns the attempt, also if it failed. Takes at most 15 seconds, twice that after a rotation. */
  async test(destinationId: string, options?: RequestOptions): Promise<WebhookAttempt> {
    return (await this.#transport.call('testDestination', { params: { destinationId } }, options)).attempt;
  }

  /**
   * Sends records again, from a `sequence` or a time on, in new deliveries. Those that wait are cancelled. Resolves when the request is
   * stored.
   *
   * @throws BadRequestError if the log does not reach so far
   */
  async recover(destinationId: string, params: RecoverDestination, options?: RequestOptions): Promise<Destination> {
    return (await this.#transport.call('recoverDestination', { params: { destinationId }, body: params }, options))
      .destination;
  }

  /** Deliveries, newest first. */
  deliveries(
    destinationId: string,
    params: Query<'listDestinationDeliveries'> = {},
    options?: RequestOptions,
  ): PageRequest<DestinationDelivery> {
    return new PageRequest(
      (cursor) =>
        this.#transport.call(
          'listDestinationDeliveries',
          { params: { destinationId }, query: { ...params, cursor } },
          options,
        ),
      params.cursor,
    );
  }

  /** One delivery with its last 50 attempts and its body. */
  async delivery(
    destinationId: string,
    deliveryId: string,
    options?: RequestOptions,
  ): Promise<DestinationDeliveryWithAttempts> {
    return (await this.#transport.call('getDestinationDelivery', { params: { destinationId, deliveryId } }, options))
      .destinationDelivery;
  }
}
