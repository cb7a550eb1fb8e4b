import type { RequestOptions, Result, Transport } from '../transport.ts';
import type { AppendToWorkerTurn, ClaimWorkerTurn, CompleteWorkerTurn, WorkerTurn } from '../types.generated.ts';
import { type RunOptions, run } from '../workers/run.ts';

/**
 * Turns of Agents whose model is `{ provider: 'worker', queue }`, run by your own program. {@link run} is all that it takes;
 * the other methods are what it is made of. Permission `write` (docs/workers.md).
 */
export class Workers {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Runs turns of a queue until `signal` aborts, and resolves when those under way have ended or were given back.
   *
   *     await client.workers.run({
   *       queue: 'support',
   *       signal,
   *       onTurn: async (turn) => {
   *         const order = await turn.callTool('find_order', { orderId: '17' });
   *         await turn.append(`It is on its way: ${JSON.stringify(order)}`);
   *       },
   *     });
   *
   * A service that is away is waited for.
   *
   * @throws AuthenticationError, PermissionError, BadRequestError where the service refuses the claims
   */
  async run(options: RunOptions): Promise<void> {
    await run(this, this.#transport.sleep, options);
  }

  /**
   * Waits up to `waitSeconds` (0 to 20, default 20) for a step; null where none was offered.
   *
   * @throws NotFoundError where the Environment or the Session does not exist
   * @throws ServerError `unavailable` where too many claims wait; it may be made again
   * @throws ConflictError `turn_lost` where nothing can come any more of the turn of `sessionId`
   */
  async claim(params: ClaimWorkerTurn, options?: RequestOptions): Promise<WorkerTurn | null> {
    return (await this.#transport.call('claimWorkerTurn', { body: params }, options)).workerTurn;
  }

  /**
   * Keeps a claimed step; to be called well within its lease, 30 seconds. Answers with when that ends now (ISO 8601, UTC).
   *
   * @throws ConflictError `turn_lost`
   */
  async heartbeat(workerTurnId: string, options?: RequestOptions): Promise<string> {
    return (await this.#transport.call('heartbeatWorkerTurn', { params: { workerTurnId } }, options)).leaseExpiresAt;
  }

  /**
   * Shows text of the answer; it is in the journal when this resolves. Answers with the cursor, which the next call gives as
   * `after`, so that text sent again after a lost answer stands there once.
   *
   * @throws ConflictError `turn_lost`, `conflict` where the journal does not end at `after`
   */
  async append(workerTurnId: string, params: AppendToWorkerTurn, options?: RequestOptions): Promise<string> {
    return (await this.#transport.call('appendToWorkerTurn', { params: { workerTurnId }, body: params }, options))
      .cursor;
  }

  /**
   * Answers the step, or gives the results of its `pendingCalls`.
   *
   * @throws BadRequestError where it does not fit the worker turn, which stays claimed
   * @throws ConflictError `turn_lost`
   */
  complete(
    workerTurnId: string,
    params: CompleteWorkerTurn = {},
    options?: RequestOptions,
  ): Promise<Result<'completeWorkerTurn'>> {
    return this.#transport.call('completeWorkerTurn', { params: { workerTurnId }, body: params }, options);
  }

  /**
   * Gives the step back: it is offered again at once, text that it showed is void.
   *
   * @throws ConflictError `turn_lost`
   */
  release(workerTurnId: string, options?: RequestOptions): Promise<Result<'releaseWorkerTurn'>> {
    return this.#transport.call('releaseWorkerTurn', { params: { workerTurnId } }, options);
  }
}
