import type { RequestOptions, Result, Transport } from '../transport.ts';
import type { AppendToWorkerTurn, ClaimWorkerTurn, CompleteWorkerTurn, WorkerTurn } from '../types.generated.ts';
import type { WorkerApi } from '../workers/api.ts';
import { type RunOptions, run } from '../workers/run.ts';

/**
 * Turns of agents whose model is `{ provider: 'worker', queue }`, run by your own program. {@link run} is all you need; it
 * uses the other methods. Permission `write`. See docs/guides/workers.md.
 */
export class Workers implements WorkerApi {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Runs turns of a queue until `signal` aborts, and resolves when the current ones have ended or were released.
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
   * If the service is unreachable, it keeps retrying.
   *
   * @throws AuthenticationError, PermissionError, BadRequestError if the service refuses the claims
   */
  async run(options: RunOptions): Promise<void> {
    await run(this, this.#transport.sleep, options);
  }

  /**
   * Waits up to `waitSeconds` (0 to 20, default 20) for a step and claims it; null if none was offered.
   *
   * @throws NotFoundError if the environment or the session does not exist
   * @throws ServerError `unavailable` if too many claims wait; it can be retried
   * @throws ConflictError `turn_lost` if the turn of `sessionId` has no further step
   */
  async claim(params: ClaimWorkerTurn, options?: RequestOptions): Promise<WorkerTurn | null> {
    return (await this.#transport.call('claimWorkerTurn', { body: params }, options)).workerTurn;
  }

  /**
   * Renews the lease of a claimed step, 30 seconds from now. Returns when it expires (ISO 8601, UTC).
   *
   * @throws ConflictError `turn_lost`
   */
  async heartbeat(workerTurnId: string, options?: RequestOptions): Promise<string> {
    return (await this.#transport.call('heartbeatWorkerTurn', { params: { workerTurnId } }, options)).leaseExpiresAt;
  }

  /**
   * Appends text to the response; it is in the journal when this resolves. Returns the cursor. Pass it as `after` to the next
   * call, so that text that is sent again after a lost response is appended once.
   *
   * @throws ConflictError `turn_lost`, `conflict` if the journal does not end at `after`
   */
  async append(workerTurnId: string, params: AppendToWorkerTurn, options?: RequestOptions): Promise<string> {
    return (await this.#transport.call('appendToWorkerTurn', { params: { workerTurnId }, body: params }, options))
      .cursor;
  }

  /**
   * Completes the step with a response, or with the results of its `pendingCalls`.
   *
   * @throws BadRequestError if it does not match the worker turn, which stays claimed
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
   * The content of a file that a message names.
   *
   * @throws NotFoundError if the file was deleted
   */
  async fileContent(fileId: string, options?: RequestOptions): Promise<Uint8Array<ArrayBuffer>> {
    return await this.#transport.bytes('getFileContent', { params: { fileId } }, options);
  }

  /**
   * Releases the step: it is offered again immediately, and its appended text is discarded.
   *
   * @throws ConflictError `turn_lost`
   */
  release(workerTurnId: string, options?: RequestOptions): Promise<Result<'releaseWorkerTurn'>> {
    return this.#transport.call('releaseWorkerTurn', { params: { workerTurnId } }, options);
  }
}
