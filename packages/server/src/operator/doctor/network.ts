// Checks of what the node reaches, and of how it is reached.
import { ownProvider } from '@signalbox/contract';
import type { Config } from '../../config/config.ts';
import type { BulkConnection } from '../../db/bulk-connection.ts';
import { createEgress, type Egress, OPERATOR } from '../../egress/egress.ts';
import { EgressError } from '../../egress/errors.ts';
import { createLookup } from '../../egress/lookup.ts';
import { type EgressPolicy, parseEgressAllow } from '../../egress/policy.ts';
import { type Finding, failed, ok, type Report, run, skipped, warning, within } from './check.ts';
import { checkIdentities } from './identities.ts';

const TIMEOUT_MS = 8_000;
const MAX_HOSTS = 20;

export interface NetworkOptions {
  /** Also sends requests to model providers, with their keys. */
  online?: boolean | undefined;
  /** For the check that streams arrive at once. */
  apiKey?: string | undefined;
  /** How long it waits for the beginning of a stream. */
  patienceMs?: number | undefined;
}

export async function checkNetwork(
  config: Config,
  wish: NetworkOptions,
  connection: BulkConnection | undefined,
  report: Report,
): Promise<void> {
  if (config.publicUrl) await checkPublicUrl(config.publicUrl, wish, report);
  const { egressProxy } = config;
  if (egressProxy) {
    const { protocol, host, port } = egressProxy;
    const url = `${protocol}//${host.includes(':') ? `[${host}]` : host}:${port}/`;
    await run(
      report,
      'egress.proxy',
      async () => {
        // Whatever it responds to a request that is not for a proxy.
        await get(url, policyFor(new URL(url)));
        return ok('the proxy responds');
      },
      { fix: 'Check SIGNALBOX_EGRESS_PROXY, and that this machine reaches it.' },
    );
  }
  const egress = createEgress({ policy: config.egress, ...(egressProxy && { proxy: egressProxy }) });
  try {
    if (connection) await run(report, 'egress.webhooks', () => checkReceivers(egress, connection));
    await checkProviders(config, wish, egress, report);
    await checkIdentities(config, egress, connection, report);
  } finally {
    await egress.close();
  }
}

async function checkPublicUrl(
  url: URL,
  { apiKey, patienceMs = TIMEOUT_MS }: NetworkOptions,
  report: Report,
): Promise<void> {
  const policy = policyFor(url);
  const isReachable = await run(
    report,
    'public_url',
    async () => {
      const { status, body } = await get(new URL('/healthz', url).href, policy);
      if (status !== 200 || !body.includes('"alive"'))
        return failed(
          `${url.origin} responds with ${status}, but not as Signalbox does`,
          'Check SIGNALBOX_PUBLIC_URL, that a node runs, and what the proxy in front of it passes on.',
        );
      if (url.protocol === 'http:' && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname))
        return warning(`${url.origin} is not encrypted`, 'Serve it over https: passwords and API keys are sent there.');
      return ok(`${url.origin} responds`);
    },
    { fix: 'Check SIGNALBOX_PUBLIC_URL, its DNS and certificate, and that a node runs.' },
  );
  if (!isReachable) return;
  await run(report, 'public_url.streams', async () => {
    if (!apiKey) return skipped('set SIGNALBOX_API_KEY to a key with read, to check that streams arrive at once');
    return checkStream(url, policy, apiKey, patienceMs);
  });
}

/** A stream begins with a comment. A proxy that buffers keeps it until much more has been sent. */
async function checkStream(url: URL, policy: EgressPolicy, apiKey: string, patienceMs: number) {
  const egress = createEgress({ policy });
  try {
    const response = await within(
      egress.of(OPERATOR).fetch(new URL('/api/v1/environments/production/stream', url), {
        headers: { authorization: `Bearer ${apiKey}`, accept: 'text/event-stream' },
      }),
      patienceMs,
    );
    if (response.status !== 200)
      return warning(
        `the stream of the environment production was refused with ${response.status}`,
        'Use a key with the permission read for production in SIGNALBOX_API_KEY.',
      );
    await within(response.body!.getReader().read(), patienceMs);
    return ok('streams arrive at once');
  } catch {
    return failed(
      `nothing of a stream arrives within ${patienceMs / 1000} seconds`,
      'Turn off buffering in the proxy in front of the service; see docs/operations/load-balancers.md.',
    );
  } finally {
    await egress.close();
  }
}

async function checkReceivers(egress: Egress, connection: BulkConnection) {
  const [table] = await connection.query<{ there: boolean; destinations: boolean }>(
    `select to_regclass('webhook_subscriptions') is not null as there, to_regclass('destinations') is not null as destinations`,
  );
  if (!table?.there) return skipped('the service was never started on this database');
  const rows = await connection.query<{ url: string }>(
    `select url from webhook_subscriptions where status = 'enabled'
     ${table.destinations ? `union select url from destinations where status = 'enabled' and url is not null` : ''}
     order by url limit 1000`,
  );
  const findings: Omit<Finding, 'check'>[] = [];
  const hosts = new Set<string>();
  for (const url of rows.map((row) => URL.parse(row.url))) {
    if (url?.protocol !== 'http:' && url?.protocol !== 'https:') continue;
    try {
      egress.check(url.href);
      hosts.add(url.hostname);
    } catch {
      findings.push(
        warning(
          `webhooks to ${url.host} are not allowed`,
          'Add it to SIGNALBOX_EGRESS_ALLOW, or change the subscription or destination.',
        ),
      );
    }
  }
  const lookup = createLookup();
  for (const host of [...hosts].filter((one) => !/^[\d.]+$|^\[/.test(one)).slice(0, MAX_HOSTS)) {
    await within(lookup(host, { system: true }), TIMEOUT_MS).catch(() =>
      findings.push(
        warning(`the name ${host} of a webhook can't be looked up`, 'Check the DNS of this machine, and the name.'),
      ),
    );
  }
  if (findings.length > 0) return findings;
  if (rows.length === 0) return ok('no webhooks are enabled');
  return ok(`webhooks can be sent to ${rows.length === 1 ? 'the one address' : `all ${rows.length} addresses`}`);
}

/** What keys begin with; others may be right, of a gateway. */
const prefixes: Readonly<Record<string, RegExp>> = {
  OPENAI_API_KEY: /^sk-/,
  ANTHROPIC_API_KEY: /^sk-ant-/,
  GOOGLE_GENERATIVE_AI_API_KEY: /^AIza/,
};
const headersOf: Readonly<Record<string, (key: string) => Record<string, string>>> = {
  openai: (key) => ({ authorization: `Bearer ${key}` }),
  anthropic: (key) => ({ 'x-api-key': key, 'anthropic-version': '2023-06-01' }),
  google: (key) => ({ 'x-goog-api-key': key }),
};

async function checkProviders(
  { providerKeys }: Config,
  { online }: NetworkOptions,
  egress: Egress,
  report: Report,
): Promise<void> {
  for (const [name, headers] of Object.entries(headersOf)) {
    const provider = ownProvider(name);
    const key = provider && providerKeys[provider.keyName];
    if (!provider || !key) continue;
    const { keyName, baseUrl } = provider;
    await run(report, `provider.${name}`, async () => {
      if (online) return askProvider(egress, keyName, `${baseUrl}/models`, headers(key));
      if (prefixes[keyName]?.test(key) !== false) return ok(`${keyName} is set`);
      return warning(
        `${keyName} does not look like a key of this provider`,
        'Check it with signalbox doctor --online.',
      );
    });
  }
}

async function askProvider(egress: Egress, keyName: string, url: string, headers: Record<string, string>) {
  try {
    const { status } = await egress.of(OPERATOR).request({
      url,
      method: 'GET',
      headers,
      timeoutMs: TIMEOUT_MS,
      maxResponseBytes: 1_000_000,
    });
    if (status === 200) return ok(`the provider accepts ${keyName}`);
    if (status === 400 || status === 401 || status === 403)
      return failed(`the provider refuses ${keyName} (${status})`, 'Set it to a valid key.');
    return warning(`the provider responds with ${status}`, 'Try again later.');
  } catch (error) {
    const reason = error instanceof EgressError ? `${error.message} (${error.kind})` : (error as Error).message;
    return failed(
      `the provider can't be reached: ${reason}`,
      'Check the DNS, the firewall and SIGNALBOX_EGRESS_PROXY.',
    );
  }
}

/** Lets this one address through, which the operator has set. */
function policyFor({ hostname }: URL): EgressPolicy {
  return parseEgressAllow(hostname.replace(/^\[|\]$/g, ''));
}

async function get(url: string, policy: EgressPolicy): Promise<{ status: number; body: string }> {
  const egress = createEgress({ policy });
  try {
    const { status, body } = await egress.of(OPERATOR).request({
      url,
      method: 'GET',
      timeoutMs: TIMEOUT_MS,
      maxResponseBytes: 10_000,
    });
    return { status, body: body.toString() };
  } catch (error) {
    if (!(error instanceof EgressError)) throw error;
    throw new Error(`${new URL(url).origin} can't be reached: ${error.reason ?? error.message}`);
  } finally {
    await egress.close();
  }
}
