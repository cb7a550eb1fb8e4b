import { BudgetList, BudgetParams, ListBudgets, OrganizationBudget, SetBudget } from '../budgets.ts';
import { Type } from '../schema.ts';
import { one, table } from './route.ts';

export const budgetRoutes = table({
  listBudgets: {
    method: 'GET',
    path: '/budgets',
    scope: 'usage:read',
    tag: 'Budgets',
    summary: 'List budgets',
    description: 'With what was spent in the current period.',
    query: ListBudgets,
    status: 200,
    result: BudgetList,
  },
  setBudget: {
    method: 'PUT',
    path: '/budgets/{budgetName}',
    scope: 'organization:manage',
    agents: 'closed',
    tag: 'Budgets',
    summary: 'Set a budget',
    description:
      'Creates or replaces it. What it is for (`period`, `environment`, `agentId`, `keyId`) does not change: delete it and create another.',
    params: BudgetParams,
    body: SetBudget,
    canOnlyCreate: true,
    status: 200,
    result: one('budget', OrganizationBudget),
    errors: ['not_found', 'conflict'],
  },
  deleteBudget: {
    method: 'DELETE',
    path: '/budgets/{budgetName}',
    scope: 'organization:manage',
    tag: 'Budgets',
    summary: 'Delete a budget',
    description: 'With its alerts. Turns that it stopped can begin at once.',
    params: BudgetParams,
    status: 200,
    result: Type.Object({ name: Type.String(), deleted: Type.Literal(true) }),
  },
});
