import type { Query, RequestOptions, Result, Transport } from '../transport.ts';
import type { OrganizationBudget, SetBudget } from '../types.generated.ts';

/** Budgets in US dollars, of the organization, an environment, an agent or a key. Reading needs `read`, changing `admin`. */
export class Budgets {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** By name, with what was spent in the current day or month. */
  async list(params: Query<'listBudgets'> = {}, options?: RequestOptions): Promise<OrganizationBudget[]> {
    return (await this.#transport.call('listBudgets', { query: params }, options)).data;
  }

  /**
   * Creates a budget, and never replaces one.
   *
   *     await client.budgets.create('monthly', { limitUsd: 500, period: 'month' });
   *
   * @throws ConflictError `precondition_failed` if there is a budget of this name; `conflict` if there are 100 budgets
   * @throws NotFoundError if the environment, the agent or the key does not exist
   */
  async create(name: string, params: SetBudget, options?: RequestOptions): Promise<OrganizationBudget> {
    const input = { params: { budgetName: name }, body: params, onlyCreate: true } as const;
    return (await this.#transport.call('setBudget', input, options)).budget;
  }

  /**
   * Creates or replaces a budget.
   *
   *     await client.budgets.set('monthly', { limitUsd: 500, period: 'month' });
   *
   * @throws NotFoundError if the environment, the agent or the key does not exist
   * @throws ConflictError if a budget of this name is for something else, or there are 100 budgets
   */
  async set(name: string, params: SetBudget, options?: RequestOptions): Promise<OrganizationBudget> {
    return (await this.#transport.call('setBudget', { params: { budgetName: name }, body: params }, options)).budget;
  }

  /** @throws NotFoundError */
  delete(name: string, options?: RequestOptions): Promise<Result<'deleteBudget'>> {
    return this.#transport.call('deleteBudget', { params: { budgetName: name } }, options);
  }
}
