// Commands with which the operator lists and creates organizations on the host.
import { routes } from '@signalbox/contract';
import type { Config } from '../config/config.ts';
import { systemOrigin } from '../events/record.ts';
import { validatorOf } from '../http/body/validate.ts';
import { ApiError } from '../lib/api-error.ts';
import { systemClock } from '../lib/clock.ts';
import { formatId } from '../lib/ids.ts';
import { allOrganizations, foundOrganization } from '../organizations/organizations.ts';
import { OperatorError, withInstallation } from './operator.ts';
import { explainStart } from './start-error.ts';

interface OrganizationOnHost {
  organizationId: string;
  name: string;
}

/** All organizations of the installation, oldest first. Throws `OperatorError` or `StartError`. */
export async function listOrganizationsOnHost(config: Config): Promise<OrganizationOnHost[]> {
  try {
    const found = await withInstallation(config, allOrganizations);
    return found.map(({ organizationId, name }) => ({ organizationId: formatId('org', organizationId), name }));
  } catch (error) {
    throw explainStart(error, config);
  }
}

/**
 * Creates an organization with the environments `production` and `staging`, and without people or keys; its event log names the system
 * as its author. Throws `OperatorError` if the name is not allowed, or `StartError`.
 */
export async function createOrganizationOnHost(config: Config, wanted: string): Promise<OrganizationOnHost> {
  const name = validName(wanted);
  try {
    return await withInstallation(config, (db) =>
      db.transaction(async (tx) => {
        const { organizationId } = await foundOrganization(tx, systemOrigin, systemClock.now(), name);
        return { organizationId: formatId('org', organizationId), name };
      }),
    );
  } catch (error) {
    throw explainStart(error, config);
  }
}

/** By the same rule as `PATCH /organization`. */
function validName(name: string): string {
  try {
    const { name: valid } = validatorOf(routes.updateOrganization)({ params: {}, query: {}, body: { name } }) as {
      name: string;
    };
    return valid;
  } catch (error) {
    if (!(error instanceof ApiError) || !error.errors) throw error;
    throw new OperatorError(error.errors.map(({ message }) => `The name ${message}`).join('\n'));
  }
}
