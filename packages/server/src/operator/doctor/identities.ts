// Checks of the identities that SIGNALBOX_CLOUD_IDENTITIES lets environments use.
import type { ProviderName } from '@signalbox/contract';
import type { Config } from '../../config/config.ts';
import type { BulkConnection } from '../../db/bulk-connection.ts';
import { type Egress, OPERATOR } from '../../egress/egress.ts';
import { unknownEnvironments } from '../../environments/with-identity.ts';
import { systemClock } from '../../lib/clock.ts';
import { checkIdentity } from '../../models/identities/identities.ts';
import type { IdentityVariables } from '../../vault/cloud-identities.ts';
import { failed, ok, type Report, run, skipped, warning } from './check.ts';

/** What says that there is an identity at a provider. */
const marks: readonly [ProviderName, keyof IdentityVariables][] = [
  ['azure', 'AZURE_FEDERATED_TOKEN_FILE'],
  ['bedrock', 'AWS_WEB_IDENTITY_TOKEN_FILE'],
  ['vertex', 'GOOGLE_APPLICATION_CREDENTIALS'],
];

export async function checkIdentities(
  { cloudIdentities }: Config,
  egress: Egress,
  connection: BulkConnection | undefined,
  report: Report,
): Promise<void> {
  const { environments, variables } = cloudIdentities;
  if (environments.length === 0) return;
  const had: ProviderName[] = [];
  for (const [provider, variable] of marks.filter(([, name]) => variables[name] !== undefined)) {
    await run(report, `identity.${provider}`, async () => {
      try {
        await checkIdentity(provider, cloudIdentities, { egress: egress.of(OPERATOR), clock: systemClock });
      } catch (error) {
        return failed(
          (error as Error).message,
          `Check ${variable}, the variables beside it, and the rights at the cloud.`,
        );
      }
      had.push(provider);
      return ok('a token of the identity can be had');
    });
  }
  await run(report, 'identity.environments', async () => {
    // A database without the table has no environments.
    const unknown = new Set(
      connection &&
        (await unknownEnvironments(({ text, values }) => connection.query(text, values), environments).catch(
          () => environments,
        )),
    );
    return environments.map((one) => {
      if (unknown.has(one))
        return warning(`${one.entry} does not exist`, 'Correct SIGNALBOX_CLOUD_IDENTITIES, or create the environment.');
      if (!connection) return skipped(`${one.entry}: whether it exists is not known without the database`);
      if (had.length > 0) return ok(`${one.entry} can use the identity at ${had.join(', ')}`);
      return failed(
        `${one.entry} may use an identity, and none can be had`,
        `Set ${marks.map(([, variable]) => variable).join(', ')} or clear SIGNALBOX_CLOUD_IDENTITIES.`,
      );
    });
  });
}
