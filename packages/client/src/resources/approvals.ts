import { PageRequest } from '../page.ts';
import type { Query, RequestOptions, Transport } from '../transport.ts';
import type { Approval, ResolveApproval } from '../types.generated.ts';

/** Another `input` for the call, for how long it holds (`scope`), why, and on whose behalf. */
export type ApproveParams = Omit<ResolveApproval, 'decision'>;

/** Why, and on whose behalf. */
export type DenyParams = Pick<ResolveApproval, 'reason' | 'onBehalfOf'>;

/** Approvals: effectful calls that wait for a person; list and read `read`, resolve `write` (api.md section 5). */
export class Approvals {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The inbox over all Sessions, oldest first; `status: 'pending'` for what is open, `order: 'desc'` for the newest. */
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
   * Decides. The first decision wins; the same again answers with what was first recorded, whatever `input` and `scope` it
   * brings.
   *
   * @throws BadRequestError where the `input` does not match the tool's schema; it stays pending
   * @throws ConflictError `approval_already_resolved` where another decision was made, or it expired or was cancelled
   */
  async resolve(operationId: string, params: ResolveApproval, options?: RequestOptions): Promise<Approval> {
    return (await this.#transport.call('resolveApproval', { params: { operationId }, body: params }, options)).approval;
  }

  /**
   * {@link resolve} with `approved`: the call runs, with the `input` given here or else its own. `scope: 'session'` lets later
   * calls of this tool in this Session run unasked.
   *
   *     await client.approvals.approve(operationId, { input: { order: '1042', cents: 4900 }, onBehalfOf: 'maria' });
   */
  approve(operationId: string, params: ApproveParams = {}, options?: RequestOptions): Promise<Approval> {
    return this.resolve(operationId, { ...params, decision: 'approved' }, options);
  }

  /** {@link resolve} with `denied`: the call does not run, and the model is told so, with the `reason`. */
  deny(operationId: string, params: DenyParams = {}, options?: RequestOptions): Promise<Approval> {
    return this.resolve(operationId, { ...params, decision: 'denied' }, options);
  }
}
