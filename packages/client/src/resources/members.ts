import { PageRequest } from '../page.ts';
import type { Query, RequestOptions, Result, Transport } from '../transport.ts';
import type { Member, PasswordReset, UpdateMember } from '../types.generated.ts';

/** The people of the organization; role `admin`, and only for a person who is signed in (api.md section 9). */
export class Members {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Newest first. */
  list(params: Query<'listMembers'> = {}, options?: RequestOptions): PageRequest<Member> {
    return new PageRequest(
      (cursor) => this.#transport.call('listMembers', { query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /**
   * Changes a role. Not tried again after a lost connection.
   *
   * @throws PermissionError where only an owner may
   * @throws ConflictError `last_owner`
   * @throws NotFoundError
   */
  async update(userId: string, params: UpdateMember, options?: RequestOptions): Promise<Member> {
    return (await this.#transport.call('updateMember', { params: { userId }, body: params }, options)).member;
  }

  /**
   * Removes a person, at once. Who was in no other organization is forgotten.
   *
   * @throws PermissionError where only an owner may
   * @throws ConflictError `last_owner`
   * @throws NotFoundError
   */
  remove(userId: string, options?: RequestOptions): Promise<Result<'removeMember'>> {
    return this.#transport.call('removeMember', { params: { userId } }, options);
  }

  /**
   * Makes a link with which the person sets a new password, valid once and for 24 hours; an older one is void.
   *
   * @throws PermissionError for who outranks the caller, or is of another organization too
   * @throws NotFoundError
   */
  resetPassword(userId: string, options?: RequestOptions): Promise<PasswordReset> {
    return this.#transport.call('resetPassword', { params: { userId } }, options);
  }
}
