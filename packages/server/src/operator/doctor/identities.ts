// Checks of the identities that SIGNALBOX_CLOUD_IDENTITIES lets environments use.
import type { ProviderName } from '@signalbox/contract';
import type { Config } from '../../config/config.ts';
import type { BulkConnection } from '../../db/bulk-connection.ts';
import { type Egress, OPERATOR } from '../../egress/egress.ts';
import { unknownEnvironments } from '../../environments/with-identity.ts';
import { systemClock } from '../../lib/clock.ts';
import { checkIdentity, identityMark, identityProviders } from '../../models/identities/identities.ts';
import { createMetadata } from '../../models/identities/metadata.ts';
import type { CloudIdentities } from '../../vault/cloud-identities.ts';
import { failed, ok, type Report, run, skipped, warning } from './check.ts';

export async function checkIdentities(
  { cloudIdentities }: Config,
  egress: Egress,
  connection: BulkConnection | undefined,
  report: Report,
): Promise<void> {
  const { environments, variables } = cloudIdentities;
  if (environments.length === 0) return;
  const metadata = createMetadata(variables, { clock: systemClock });
  try {
    const had = await checkSources(
      cloudIdentities,
      { egress: egress.of(OPERATOR), metadata, clock: systemClock },
      report,
    );
    await checkEnvironments(environments, had, connection, report);
  } finally {
    await metadata.close();
  }
}

/** Returns the providers whose identity can be had. */
async function checkSources(
  cloudIdentities: CloudIdentities,
  means: Parameters<typeof checkIdentity>[2],
  report: Report,
): Promise<ProviderName[]> {
  const had: ProviderName[] = [];
  for (const provider of identityProviders) {
    const found = await identityMark(provider, cloudIdentities, means);
    if (!found) continue;
    await run(report, `identity.${provider}`, async () => {
      try {
        await checkIdentity(provider, cloudIdentities, means);
      } catch (error) {
        const fix = `Check ${found.mark}, the settings beside it, and the rights at the cloud.`;
        // A machine at a cloud need not have an identity there.
        return (found.isSet ? failed : warning)((error as Error).message, fix);
      }
      had.push(provider);
      return ok('a token of the identity can be had');
    });
  }
  return had;
}

async function checkEnvironments(
  environments: CloudIdentities['environments'],
  had: readonly ProviderName[],
  connection: BulkConnection | undefined,
  report: Report,
): Promise<void> {
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
        'Give this machine an identity (docs/guides/models.md), or clear SIGNALBOX_CLOUD_IDENTITIES.',
      );
    });
  });
}
