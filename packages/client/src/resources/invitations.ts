import { PageRequest } from '../page.ts';
import type { Query, RequestOptions, Result, Transport } from '../transport.ts';
import type { CreatedInvitation, CreateInvitation, Invitation } from '../types.generated.ts';

/** Links that let people in; role `admin`, and only for a person who is signed in (api.md section 9). */
export class Invitations {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Those that may still be accepted, newest first. */
  list(params: Query<'listInvitations'> = {}, options?: RequestOptions): PageRequest<Invitation> {
    return new PageRequest(
      (cursor) => this.#transport.call('listInvitations', { query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /**
   * Makes a link to hand over, in this answer alone; it is valid once and for 7 days.
   *
   * @throws PermissionError where only an owner may invite an owner
   * @throws ConflictError `conflict` where whoever has the e-mail is a member already
   */
  create(params: CreateInvitation, options?: RequestOptions): Promise<CreatedInvitation> {
    return this.#transport.call('createInvitation', { body: params }, options);
  }

  /**
   * Withdraws an invitation.
   *
   * @throws NotFoundError also for one that was accepted
   */
  delete(invitationId: string, options?: RequestOptions): Promise<Result<'deleteInvitation'>> {
    return this.#transport.call('deleteInvitation', { params: { invitationId } }, options);
  }
}
