import { PageRequest } from '../page.ts';
import type { Query, RequestOptions, Result, Transport } from '../transport.ts';
import type {
  CreatedWebhookSubscription,
  CreateWebhookSubscription,
  ReceivedWebhook,
  RecoverDeliveries,
  RotatedSecret,
  RotateSecret,
  UpdateWebhookSubscription,
  WebhookAttempt,
  WebhookDelivery,
  WebhookDeliveryWithAttempts,
  WebhookSubscription,
} from '../types.generated.ts';

/**
 * Webhook subscriptions, one per environment and addressed by its name. Reading needs `read`, changing `write`. To receive
 * webhooks, use `webhooks.receiver`.
 */
export class WebhookSubscriptions {
  /** Deliveries and their attempts. */
  readonly deliveries: WebhookDeliveries;
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.deliveries = new WebhookDeliveries(transport);
  }

  /** Subscriptions of all environments, newest first. */
  list(params: Query<'listWebhookSubscriptions'> = {}, options?: RequestOptions): PageRequest<WebhookSubscription> {
    return new PageRequest(
      (cursor) => this.#transport.call('listWebhookSubscriptions', { query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /**
   * Creates the subscription of an environment. `signingSecret` is in this response only: store it.
   *
   * @throws NotFoundError if the environment does not exist
   * @throws ConflictError `subscription_exists`
   * @throws UnprocessableError `url_not_allowed`
   */
  create(params: CreateWebhookSubscription, options?: RequestOptions): Promise<CreatedWebhookSubscription> {
    return this.#transport.call('createWebhookSubscription', { body: params }, options);
  }

  /** @throws NotFoundError */
  async get(env: string, options?: RequestOptions): Promise<WebhookSubscription> {
    return (await this.#transport.call('getWebhookSubscription', { params: { env } }, options)).webhookSubscription;
  }

  /**
   * Changes the URL or chunk types, pauses or resumes. Chunks that were kept while it was paused are then sent. Not retried
   * after a lost connection.
   *
   * @throws UnprocessableError `url_not_allowed`
   */
  async update(env: string, params: UpdateWebhookSubscription, options?: RequestOptions): Promise<WebhookSubscription> {
    return (await this.#transport.call('updateWebhookSubscription', { params: { env }, body: params }, options))
      .webhookSubscription;
  }

  /** Deletes the subscription; a new one inherits nothing from it. */
  delete(env: string, options?: RequestOptions): Promise<Result<'deleteWebhookSubscription'>> {
    return this.#transport.call('deleteWebhookSubscription', { params: { env } }, options);
  }

  /**
   * Creates a new `signingSecret`, which is in this response only. The previous one remains valid for `gracePeriodSeconds` (0
   * to 604,800; default 86,400): configure the receiver with both until then.
   */
  rotateSecret(env: string, params: RotateSecret = {}, options?: RequestOptions): Promise<RotatedSecret> {
    return this.#transport.call('rotateWebhookSecret', { params: { env }, body: params }, options);
  }

  /**
   * Sends one signed envelope of the made-up session `ses_test` now, and returns the attempt, also if it failed. Takes at most
   * 15 seconds, twice that in the grace period of a rotation.
   */
  async test(env: string, options?: RequestOptions): Promise<WebhookAttempt> {
    return (await this.#transport.call('testWebhookSubscription', { params: { env } }, options)).attempt;
  }

  /**
   * The last 100 requests to the built-in test receiver (`url: 'signalbox:test-receiver'`), newest first, with headers and
   * body as they were sent.
   *
   * @throws NotFoundError if the environment has no subscription
   */
  received(
    env: string,
    params: Query<'listReceivedWebhooks'> = {},
    options?: RequestOptions,
  ): PageRequest<ReceivedWebhook> {
    return new PageRequest(
      (cursor) =>
        this.#transport.call('listReceivedWebhooks', { params: { env }, query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /**
   * Sends chunks again from the journal: of all sessions since a time, or of one session after a cursor. Resolves when the
   * request is stored; the service then sends a few sessions at a time, in order, along with new chunks.
   *
   * @throws BadRequestError `invalid_cursor`
   * @throws NotFoundError if the environment has no such session
   * @throws ConflictError `conflict` if too many requests are pending
   */
  async recover(env: string, params: RecoverDeliveries, options?: RequestOptions): Promise<WebhookSubscription> {
    return (await this.#transport.call('recoverDeliveries', { params: { env }, body: params }, options))
      .webhookSubscription;
  }
}

/** Deliveries of a subscription. Reading needs `read`, resending `write`. */
export class WebhookDeliveries {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Deliveries, newest first. */
  list(env: string, params: Query<'listDeliveries'> = {}, options?: RequestOptions): PageRequest<WebhookDelivery> {
    return new PageRequest(
      (cursor) => this.#transport.call('listDeliveries', { params: { env }, query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /** One delivery with its last 50 attempts. */
  async get(env: string, deliveryId: string, options?: RequestOptions): Promise<WebhookDeliveryWithAttempts> {
    return (await this.#transport.call('getDelivery', { params: { env, deliveryId } }, options)).webhookDelivery;
  }
  /**
   * Sends a delivery again with the same ID and bytes, so a receiver can detect the duplicate. A pending delivery is retried
   * now. Resolves when the request is stored; `get` then shows the attempt.
   *
   * @throws NotFoundError
   */
  async resend(env: string, deliveryId: string, options?: RequestOptions): Promise<WebhookDelivery> {
    return (await this.#transport.call('resendDelivery', { params: { env, deliveryId } }, options)).webhookDelivery;
  }
}
