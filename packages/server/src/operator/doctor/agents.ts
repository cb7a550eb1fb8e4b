// Checks the definitions of agents as saving them would. Earlier releases stored some that would be refused now, such as a rule of an
// approval with a misspelt property, and they continue to run. And whether their secrets exist: one may be set after the agent that names
// it was saved, so saving asks for none.
import { neededSecrets } from '@signalbox/contract';
import { didYouMean } from '@signalbox/contract/nearest';
import { fitErrors } from '../../agents/fit-errors.ts';
import { complete, modelsOf } from '../../agents/read-definition.ts';
import type { BulkConnection } from '../../db/bulk-connection.ts';
import { systemClock } from '../../lib/clock.ts';
import { formatId } from '../../lib/ids.ts';
import { announcedEnd } from '../../usage/known-models.ts';
import { modelName } from '../../usage/prices.ts';
import type { CloudIdentities } from '../../vault/cloud-identities.ts';
import { type Finding, ok, warning } from './check.ts';

/** The newest agents of all organizations. An installation with more has them created by programs, so they are alike. */
const MAX_CHECKED = 2_000;
/** A definition can have a megabyte. */
const PAGE = 50;
const MAX_SHOWN = 10;
const ENDS_SOON_MS = 60 * 24 * 3600 * 1000;

interface Row {
  organizationId: string;
  agentId: string;
  version: number;
  /** As it is stored. */
  definition: Parameters<typeof complete>[0];
  /** The names of the organization's secrets, in any environment. */
  secrets: string[];
}

/** The second parameter: which environments may use identities in place of keys of clouds. */
export async function checkAgents(
  connection: BulkConnection,
  { environments }: CloudIdentities,
): Promise<Omit<Finding, 'check'>[]> {
  const findings: Omit<Finding, 'check'>[] = [];
  let count = 0;
  let after: [string | null, string | null] = [null, null];
  for (let page: Row[] = []; count < MAX_CHECKED; ) {
    page = await connection.query<Row>(
      `select a.organization_id as "organizationId", a.agent_id as "agentId", a.version, v.definition,
         array(select distinct s.name from environment_secrets s where s.organization_id = a.organization_id) as secrets
       from agents a
       join agent_versions v
         on v.organization_id = a.organization_id and v.agent_id = a.agent_id and v.version = a.version
       where a.archived_at is null and ($1::uuid is null or (a.agent_id, a.organization_id) < ($1, $2::uuid))
       order by a.agent_id desc, a.organization_id desc limit ${PAGE}`,
      after,
    );
    for (const row of page) {
      const hasIdentity = environments.some(({ organizationId }) => organizationId === row.organizationId);
      findings.push(...(await findingsOf(row, hasIdentity)));
    }
    const last = page.at(-1);
    count += page.length;
    if (!last || page.length < PAGE) break;
    after = [last.agentId, last.organizationId];
  }
  if (findings.length === 0) return [ok(count === 1 ? '1 agent is valid' : `${count} agents are valid`)];
  const hidden = findings.length - MAX_SHOWN;
  return [
    ...findings.slice(0, MAX_SHOWN),
    ...(hidden > 0 ? [warning(`agents have ${hidden} more such problems`, 'Correct those above first.')] : []),
  ];
}

async function findingsOf(row: Row, hasIdentity: boolean) {
  const { organizationId, agentId, version, definition: stored, secrets } = row;
  const definition = complete(stored);
  const about = `${formatId('agt', agentId)} (${definition.name}), version ${version}: `;
  const findings: Omit<Finding, 'check'>[] = [];
  const [first, ...others] = await fitErrors(organizationId, definition.tools, definition.outputSchema);
  if (first) {
    const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
    const text = `${about}${first.path}: ${first.message}${more}`;
    findings.push(warning(text, 'The part has no effect as it is. Correct it and save the agent.'));
  }
  const { compaction } = definition.model;
  const until = new Date(systemClock.now().getTime() + ENDS_SOON_MS).toISOString().slice(0, 10);
  for (const model of [...modelsOf(definition), ...(compaction ? [compaction] : [])]) {
    const { endsAt, replacement } = announcedEnd(model);
    if (endsAt === null || endsAt > until) continue;
    const text = `${about}the provider of ${modelName(model)} has announced to end it on ${endsAt}`;
    findings.push(warning(text, `Give the agent another model${replacement ? `, such as ${replacement}` : ''}.`));
  }
  for (const { name, provider, cloud } of neededSecrets({ ...definition, model: { ...definition.model } })) {
    // The operator may have provided the usual key of a provider; the checks of providers are about these.
    if (provider !== undefined || secrets.includes(name)) continue;
    // An identity may take the place of the usual key of a cloud; the checks of identities are about these.
    if (hasIdentity && cloud !== undefined) continue;
    const hint = didYouMean(name, secrets);
    const text = `${about}no environment has the secret ${name}${hint === '' ? '' : `.${hint}`}`;
    findings.push(warning(text, 'Set it where the agent runs (signalbox secrets set), or correct its name.'));
  }
  return findings;
}
