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
 * Webhook subscriptions, one for each Environment and named by it; list and read `read`, change `write` (source section
 * 4.3, api.md section 7). What receives them: `webhooks.receiver`.
 */
export class WebhookSubscriptions {
  /** What was sent, and how it went. */
  readonly deliveries: WebhookDeliveries;
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.deliveries = new WebhookDeliveries(transport);
  }

  /** The subscriptions across Environments, newest first. */
  list(params: Query<'listWebhookSubscriptions'> = {}, options?: RequestOptions): PageRequest<WebhookSubscription> {
    return new PageRequest(
      (cursor) => this.#transport.call('listWebhookSubscriptions', { query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /**
   * Subscribes an Environment. `signingSecret` stands beside the subscription, in this answer alone: keep it now.
   *
   * @throws NotFoundError where the Environment does not exist
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
   * Changes url or chunk types, pauses or enables; what came meanwhile is sent then. Not tried again after a lost
   * connection.
   *
   * @throws UnprocessableError `url_not_allowed`
   */
  async update(env: string, params: UpdateWebhookSubscription, options?: RequestOptions): Promise<WebhookSubscription> {
    return (await this.#transport.call('updateWebhookSubscription', { params: { env }, body: params }, options))
      .webhookSubscription;
  }

  /** Deletes the subscription; one created anew inherits nothing from it. */
  delete(env: string, options?: RequestOptions): Promise<Result<'deleteWebhookSubscription'>> {
    return this.#transport.call('deleteWebhookSubscription', { params: { env } }, options);
  }

  /**
   * Makes a new `signingSecret`, in this answer alone. The one before is good as well for `gracePeriodSeconds` (0 to
   * 604,800; default 86,400): give a receiver both until it is over (source section 6.5).
   */
  rotateSecret(env: string, params: RotateSecret = {}, options?: RequestOptions): Promise<RotatedSecret> {
    return this.#transport.call('rotateWebhookSecret', { params: { env }, body: params }, options);
  }

  /**
   * Sends one signed envelope of no Session (`ses_test`) now, and resolves with how the receiver answered, also where it did
   * not: at most 15 seconds, twice that in the grace period of a rotation.
   */
  async test(env: string, options?: RequestOptions): Promise<WebhookAttempt> {
    return (await this.#transport.call('testWebhookSubscription', { params: { env } }, options)).attempt;
  }

  /**
   * What came to the built-in test receiver, newest first, where the subscription's url is `signalbox:test-receiver`: the last
   * hundred, headers and body as they were sent.
   *
   * @throws NotFoundError where the Environment has no subscription
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
   * Sends again from the journal: what all Sessions have shown since a time, or one Session after a cursor. Resolves when that
   * is kept; Sessions are then taken back a few at a time, beside what is live, and go on in order from there.
   *
   * @throws BadRequestError `invalid_cursor`
   * @throws NotFoundError where the Environment has no such Session
   * @throws ConflictError `conflict` where too many requests wait
   */
  async recover(env: string, params: RecoverDeliveries, options?: RequestOptions): Promise<WebhookSubscription> {
    return (await this.#transport.call('recoverDeliveries', { params: { env }, body: params }, options))
      .webhookSubscription;
  }
}

/** Deliveries of a subscription; read `read`, send again `write` (api.md section 7). */
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

  /** One delivery with all of its attempts. */
  async get(env: string, deliveryId: string, options?: RequestOptions): Promise<WebhookDeliveryWithAttempts> {
    return (await this.#transport.call('getDelivery', { params: { env, deliveryId } }, options)).webhookDelivery;
  }
  /**
   * Sends one once more: the same id and bytes, so that a receiver that has it can tell. One that waits for a retry is tried
   * now. Resolves when that is kept; `get` shows the attempt.
   *
   * @throws NotFoundError
   */
  async resend(env: string, deliveryId: string, options?: RequestOptions): Promise<WebhookDelivery> {
    return (await this.#transport.call('resendDelivery', { params: { env, deliveryId } }, options)).webhookDelivery;
  }
}
