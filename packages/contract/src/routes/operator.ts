/**
 * What the operator of an installation does with its organizations. The caller is the bearer of `SIGNALBOX_OPERATOR_TOKEN`, who belongs
 * to no organization, so these routes are in a table of their own: no key, session token or sign-in can use them.
 */
import { ApiKeyWithSecret, CreateKey } from '../keys.ts';
import {
  CreateOrganization,
  ListOrganizations,
  Organization,
  OrganizationPage,
  OrganizationParams,
  SetupLink,
} from '../people.ts';
import { one, table } from './route.ts';

const shared = { scope: 'any', tag: 'Organizations', byOperator: true } as const;

export const operatorRoutes = table({
  listOrganizations: {
    ...shared,
    method: 'GET',
    path: '/operator/organizations',
    summary: 'List organizations',
    description: 'Newest first.',
    query: ListOrganizations,
    status: 200,
    result: OrganizationPage,
  },
  createOrganization: {
    ...shared,
    method: 'POST',
    path: '/operator/organizations',
    summary: 'Create an organization',
    description:
      'It has the environments `production` and `staging`, and no people and keys yet. Names need not be unique: send an `Idempotency-Key`, so that a repeated request creates no second one.',
    body: CreateOrganization,
    status: 201,
    result: one('organization', Organization),
  },
  createOrganizationKey: {
    ...shared,
    method: 'POST',
    path: '/operator/organizations/{organizationId}/api_keys',
    summary: 'Create an API key of an organization',
    description: 'The secret is in this response only.',
    params: OrganizationParams,
    body: CreateKey,
    status: 201,
    result: one('apiKey', ApiKeyWithSecret),
    reveals: 'apiKey.secret',
  },
  createSetupLink: {
    ...shared,
    method: 'POST',
    path: '/operator/organizations/{organizationId}/setup_link',
    summary: 'Create a link for the first user of an organization',
    description:
      'The person who follows it becomes an owner. It can be used once, within 24 hours, and is in this response only. Earlier ones become void. 409 `conflict` if the organization has people already.',
    params: OrganizationParams,
    status: 201,
    result: SetupLink,
    errors: ['conflict'],
    reveals: 'link',
  },
});

export type OperatorRouteName = keyof typeof operatorRoutes;
