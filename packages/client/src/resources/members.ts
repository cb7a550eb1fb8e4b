import { PageRequest } from '../page.ts';
import type { Query, RequestOptions, Result, Transport } from '../transport.ts';
import type { Member, PasswordReset, UpdateMember } from '../types.generated.ts';

/** The members of the organization. Role `admin`, only for a signed-in user. */
export class Members {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Members, newest first. */
  list(params: Query<'listMembers'> = {}, options?: RequestOptions): PageRequest<Member> {
    return new PageRequest(
      (cursor) => this.#transport.call('listMembers', { query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /**
   * Changes a role. Not retried after a lost connection.
   *
   * @throws PermissionError if only an owner can do this
   * @throws ConflictError `last_owner`
   * @throws NotFoundError
   */
  async update(userId: string, params: UpdateMember, options?: RequestOptions): Promise<Member> {
    return (await this.#transport.call('updateMember', { params: { userId }, body: params }, options)).member;
  }

  /**
   * Removes a member immediately. The account of a user who is in no other organization is deleted.
   *
   * @throws PermissionError if only an owner can do this
   * @throws ConflictError `last_owner`
   * @throws NotFoundError
   */
  remove(userId: string, options?: RequestOptions): Promise<Result<'removeMember'>> {
    return this.#transport.call('removeMember', { params: { userId } }, options);
  }

  /**
   * Creates a link with which the user sets a new password, once, within 24 hours. It replaces an earlier link.
   *
   * @throws PermissionError if the user has a higher role than the caller, or is in another organization too
   * @throws NotFoundError
   */
  resetPassword(userId: string, options?: RequestOptions): Promise<PasswordReset> {
    return this.#transport.call('resetPassword', { params: { userId } }, options);
  }
}
