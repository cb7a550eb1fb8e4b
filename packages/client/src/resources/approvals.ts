import { PageRequest } from '../page.ts';
import type { Query, RequestOptions, Transport } from '../transport.ts';
import type { Approval, ApprovalOutcome, ResolveApproval, ResolveApprovals } from '../types.generated.ts';

/** A replacement `input`, the `scope` of the decision, the `reason`, and the user on whose behalf it is made. */
export type ApproveParams = Omit<ResolveApproval, 'decision'>;

/** The `reason`, and the user on whose behalf the decision is made. */
export type DenyParams = Pick<ResolveApproval, 'reason' | 'onBehalfOf'>;

/** Approvals: tool calls that wait for a decision. Reading needs `read`, resolving `write`. */
export class Approvals {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Approvals of all sessions, oldest first. `status: 'pending'`: open ones only; `order: 'desc'`: newest first. */
  list(params: Query<'listApprovals'> = {}, options?: RequestOptions): PageRequest<Approval> {
    return new PageRequest(
      (cursor) => this.#transport.call('listApprovals', { query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /**
   * `include: 'context'` adds the last messages before the call.
   *
   * @throws NotFoundError
   */
  async get(
    operationId: string,
    { include, ...options }: Query<'getApproval'> & RequestOptions = {},
  ): Promise<Approval> {
    const query = { include };
    return (await this.#transport.call('getApproval', { params: { operationId }, query }, options)).approval;
  }

  /**
   * Approves or denies the call. The first decision wins, unless the tool needs several approvers: then the approval stays `pending`,
   * with its `progress`, until all of them have approved the same input. Repeating the decision that resolved it returns the recorded
   * approval, whatever its `input` and `scope`.
   *
   * @throws BadRequestError if `input` does not match the tool's schema; the approval stays pending
   * @throws ConflictError `approval_already_resolved` if another decision was made, or it expired or was cancelled;
   *   `already_decided_by_you` if the caller has approved and other approvers are needed
   * @throws PermissionError `not_an_approver` if the tool's approvers do not include the caller
   */
  async resolve(operationId: string, params: ResolveApproval, options?: RequestOptions): Promise<Approval> {
    return (await this.#transport.call('resolveApproval', { params: { operationId }, body: params }, options)).approval;
  }

  /**
   * {@link resolve} with `approved`: the call runs, with this `input` if given. `scope: 'session'` also approves later calls of
   * this tool in this session.
   *
   *     await client.approvals.approve(operationId, { input: { order: '1042', cents: 4900 }, onBehalfOf: 'maria' });
   */
  approve(operationId: string, params: ApproveParams = {}, options?: RequestOptions): Promise<Approval> {
    return this.resolve(operationId, { ...params, decision: 'approved' }, options);
  }

  /** {@link resolve} with `denied`: the call does not run, and the model receives the denial with its `reason`. */
  deny(operationId: string, params: DenyParams = {}, options?: RequestOptions): Promise<Approval> {
    return this.resolve(operationId, { ...params, decision: 'denied' }, options);
  }

  /**
   * Makes one decision on up to 100 approvals. Each is decided as by {@link resolve}; the outcomes say for each, in the order of
   * `operationIds`, its status, or the error it was refused with. Repeated after a lost connection, it continues where it stopped.
   *
   *     const outcomes = await client.approvals.resolveMany({ operationIds, decision: 'denied', reason: 'The campaign is over.' });
   *     const refused = outcomes.filter(({ error }) => error !== null);
   */
  async resolveMany(params: ResolveApprovals, options?: RequestOptions): Promise<ApprovalOutcome[]> {
    return (await this.#transport.call('resolveApprovals', { body: params }, options)).results;
  }
}
