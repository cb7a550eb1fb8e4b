import { PageRequest } from '../page.ts';
import type { Query, RequestOptions, Transport } from '../transport.ts';
import type { Approval, ResolveApproval } from '../types.generated.ts';

/** Why, and on whose behalf, somebody decides. */
export type DecisionParams = Omit<ResolveApproval, 'decision'>;

/** Approvals: effectful calls that wait for a person; list and read `read`, resolve `write` (api.md section 5). */
export class Approvals {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The inbox over all Sessions, oldest first; `status: 'pending'` for what is open. */
  list(params: Query<'listApprovals'> = {}, options?: RequestOptions): PageRequest<Approval> {
    return new PageRequest(
      (cursor) => this.#transport.call('listApprovals', { query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /** @throws NotFoundError */
  async get(operationId: string, options?: RequestOptions): Promise<Approval> {
    return (await this.#transport.call('getApproval', { params: { operationId } }, options)).approval;
  }

  /**
   * Decides. The first decision wins; the same again answers with what was first recorded.
   *
   * @throws ConflictError `approval_already_resolved` where another decision was made, or it expired or was cancelled
   */
  async resolve(operationId: string, params: ResolveApproval, options?: RequestOptions): Promise<Approval> {
    return (await this.#transport.call('resolveApproval', { params: { operationId }, body: params }, options)).approval;
  }

  /** {@link resolve} with `approved`: the call runs. */
  approve(operationId: string, params: DecisionParams = {}, options?: RequestOptions): Promise<Approval> {
    return this.resolve(operationId, { ...params, decision: 'approved' }, options);
  }

  /** {@link resolve} with `denied`: the call does not run, and the model is told so, with the `reason`. */
  deny(operationId: string, params: DecisionParams = {}, options?: RequestOptions): Promise<Approval> {
    return this.resolve(operationId, { ...params, decision: 'denied' }, options);
  }
}
