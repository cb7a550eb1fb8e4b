import { PageRequest } from '../page.ts';
import type { Query, RequestOptions, Result, Transport } from '../transport.ts';
import type { CreatedInvitation, CreateInvitation, Invitation } from '../types.generated.ts';

/** Invitation links for new members. Role `admin`, only for a signed-in user. */
export class Invitations {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Open invitations, newest first. */
  list(params: Query<'listInvitations'> = {}, options?: RequestOptions): PageRequest<Invitation> {
    return new PageRequest(
      (cursor) => this.#transport.call('listInvitations', { query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /**
   * Creates a link to pass on, which is in this response only. It can be used once, within 7 days.
   *
   * @throws PermissionError if a caller who is not an owner invites an owner
   * @throws ConflictError `conflict` if a member has this email already
   */
  create(params: CreateInvitation, options?: RequestOptions): Promise<CreatedInvitation> {
    return this.#transport.call('createInvitation', { body: params }, options);
  }

  /**
   * Withdraws an invitation.
   *
   * @throws NotFoundError also if it was accepted
   */
  delete(invitationId: string, options?: RequestOptions): Promise<Result<'deleteInvitation'>> {
    return this.#transport.call('deleteInvitation', { params: { invitationId } }, options);
  }
}
