// Takes the pictures of the console in README and docs, light and dark, from a service of its own: `npm run pictures:docs`.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Signalbox } from '@signalbox/client';
import type { Page } from 'playwright-core';
import { launchChromium } from '../test/support/chromium.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const images = join(root, 'docs/images');
const scratch = mkdtempSync(join(tmpdir(), 'signalbox-pictures-'));
const QUALITY = 82;

/** The address of the console's setup link, once the service has started. */
async function start(): Promise<{ link: URL; stop: () => Promise<void> }> {
  const service = spawn(
    process.execPath,
    ['packages/cli/src/main.ts', 'start', '--port', '0', '--data-dir', join(scratch, 'data')],
    {
      cwd: root,
      env: { ...process.env, SIGNALBOX_MODEL_PRICES: '{"scripted/*":{"inputUsd":3,"outputUsd":15}}' },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  const stopped = new Promise<void>((resolve) => service.once('exit', () => resolve()));
  let text = '';
  for await (const bytes of service.stderr) {
    text += bytes;
    const found = /http\S+\/console\/link#\w+/.exec(text);
    if (!found) continue;
    service.stderr.resume();
    const stop = () => {
      service.kill('SIGTERM');
      return stopped;
    };
    return { link: new URL(found[0]), stop };
  }
  throw new Error(`The service did not start: ${text}`);
}

interface Seeded {
  origin: string;
  cookie: string;
  organizationId: string;
  session: string;
  agent: string;
}

const refundTool = {
  type: 'client' as const,
  name: 'refund_order',
  description: 'Refunds an order, or a part of it.',
  inputSchema: {
    type: 'object',
    properties: { order: { type: 'string' }, amount: { type: 'number' }, reason: { type: 'string' } },
    required: ['order', 'amount'],
  },
};

const policy = `Order **1042** arrived damaged, so you can have a refund or a replacement.

| Item | Price | Status |
|---|---:|---|
| Lamp *Leipzig* | €42.50 | damaged |
| Cable | €7.00 | fine |

I refunded the lamp:

\`\`\`json
{ "order": "1042", "amount": 42.5, "status": "refunded" }
\`\`\`

The money is on your card in **3–5 days**.`;

const inputs = [
  'My order 1042 arrived damaged. Can I get a refund?',
  'Where is my parcel? It should have been here on Monday.',
  'Invoice 2231 has no VAT number',
  'Cancel my subscription at the end of the month, please',
  'Summarize the open tickets of this week, by cause',
  'The lamp flickers since I changed the bulb',
];

async function seed(link: URL): Promise<Seeded> {
  const { origin } = link;
  const response = await fetch(`${origin}/console/api/links/accept`, {
    method: 'POST',
    headers: { origin, 'content-type': 'application/json' },
    body: JSON.stringify({
      token: link.hash.slice(1),
      password: 'a long sentence for pictures',
      name: 'Ana Castro',
      email: 'ana@example.com',
      organizationName: 'Lamps & Co.',
    }),
  });
  if (!response.ok) throw new Error(await response.text());
  const account = (await response.json()) as { csrfToken: string; organizations: { organizationId: string }[] };
  const cookie = response.headers.getSetCookie()[0]!.split(';', 1)[0]!;
  const { organizationId } = account.organizations[0]!;
  const client = new Signalbox({
    baseUrl: origin,
    session: { organizationId, csrfToken: account.csrfToken },
    fetch: (input, init) => {
      const headers = new Headers(init?.headers);
      headers.set('cookie', cookie);
      headers.set('origin', origin);
      return fetch(input, { ...init, headers });
    },
  });
  const create = (
    name: string,
    script: object[],
    tools: (typeof refundTool & { approval: 'always' | 'never' })[] = [],
  ) =>
    client.agents.create({
      name,
      instructions: `You are the ${name.toLowerCase()} of a shop for lamps. Look things up before you answer. Be brief.`,
      model: { provider: 'scripted', model: 'shop', settings: { script } },
      tools,
    });
  const call = { name: 'refund_order', input: { order: '1042', amount: 42.5, reason: 'arrived damaged' } };
  const answer = { text: policy, tokenDelayMs: 12 };
  const refunds = await create(
    'Refund desk',
    [{ text: 'I check the order and ask for the refund.', tokenDelayMs: 20, toolCalls: [call] }, answer],
    [{ ...refundTool, approval: 'always' }],
  );
  const others = [
    await create('Support', [{ text: 'Your parcel is on its way: it arrives tomorrow.', tokenDelayMs: 30 }]),
    await create('Invoice triage', [{ text: 'I added the VAT number and sent the invoice again.', tokenDelayMs: 15 }]),
    await create('Weekly report', [{ text: 'Twelve tickets, seven of them about delivery.', tokenDelayMs: 40 }]),
  ];
  const failing = await client.agents.create({ name: 'Translator', model: 'openai/gpt-6.1-terra' });
  const shownAgent = await client.agents.create({
    name: 'Returns',
    description: 'Answers questions about returns, and refunds damaged goods.',
    instructions:
      'You answer for a shop for lamps. Look the order up before you answer. Refund what arrived damaged. Be brief.',
    model: { provider: 'anthropic', model: 'claude-sonnet-5-5' },
    tools: [{ ...refundTool, approval: 'always' }],
  });
  const open = (agentId: string, n: number, input = inputs[n % inputs.length]!) =>
    client.sessions.open({
      agentId,
      environment: 'production',
      input,
      closeOnIdle: n % 3 === 0,
      endUser: { id: `cus_${1000 + n}`, name: ['Ben Ito', 'Mia Schulz', 'Noor Haddad', 'Eva Novak'][n % 4]! },
    });
  for (let n = 0; n < 30; n++) await open(n % 9 === 4 ? failing.agentId : others[n % others.length]!.agentId, n);
  for (let n = 0; n < 4; n++) await open(refunds.agentId, 3 * n + 1, inputs[0]);
  const shown = await open(refunds.agentId, 1, inputs[0]);
  const until = async (status: string) => {
    for await (const { chunks } of client.sessions.stream(shown.sessionId)) {
      if (chunks.some((chunk) => chunk.type === 'session.status' && chunk.status === status)) return;
    }
  };
  await until('waiting');
  const [approval] = (await client.approvals.list({ sessionId: shown.sessionId })).data;
  await client.approvals.approve(approval!.operationId);
  let session = await client.sessions.get(shown.sessionId);
  while (!session.waitingFor?.toolCallIds?.length) session = await client.sessions.get(shown.sessionId);
  await client.sessions.sendToolResult(shown.sessionId, {
    toolCallId: session.waitingFor.toolCallIds[0]!,
    output: { status: 'refunded' },
  });
  await until('idle');
  return { origin, cookie, organizationId, session: shown.sessionId, agent: shownAgent.agentId };
}

/** In WebP, which the browser writes. Without a scrollbar. */
async function take(page: Page, name: string): Promise<void> {
  const devtools = await page.context().newCDPSession(page);
  const { data } = await devtools.send('Page.captureScreenshot', { format: 'webp', quality: QUALITY });
  const bytes = Buffer.from(data, 'base64');
  writeFileSync(join(images, `${name}.webp`), bytes);
  process.stdout.write(`${name}.webp ${Math.round(bytes.length / 1000)} KB\n`);
}

const service = await start();
try {
  const { origin, cookie, organizationId, session, agent } = await seed(service.link);
  mkdirSync(images, { recursive: true });
  const pages: [name: string, path: string, shown: string][] = [
    ['session', `/sessions/${session}`, 'main:has([aria-label="Trace"] [role="row"]) table'],
    ['sessions', '/sessions', 'tr[data-item]'],
    ['approvals', '/approvals', '.approval-group'],
    ['overview', '/', '[aria-labelledby="waiting"] :text("Refund desk")'],
    ['agent', `/agents/${agent}`, 'text=A secret is missing'],
  ];
  for (const scheme of ['light', 'dark'] as const) {
    for (const [name, path, shown] of pages) {
      const browser = await launchChromium(scratch);
      const context = await browser.newContext({
        viewport: { width: 1280, height: 800 },
        colorScheme: scheme,
        locale: 'en',
        reducedMotion: 'reduce',
      });
      const [key = '', value = ''] = cookie.split(/=(.*)/s);
      await context.addCookies([{ name: key, value, url: origin }]);
      const page = await context.newPage();
      await page.goto(`${origin}/console/${organizationId}${path}`);
      await page.locator(shown).first().waitFor();
      // Nothing is still loading. The network is never idle, because every page follows the event log.
      await page.locator('.bone').first().waitFor({ state: 'detached' });
      await page.evaluate('document.fonts.ready');
      await take(page, `${name}-${scheme}`);
      await browser.close();
    }
  }
} finally {
  await service.stop();
  rmSync(scratch, { recursive: true, force: true });
}
