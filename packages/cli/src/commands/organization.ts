// `signalbox organization …`: the organization of the API key.
import type { Organization } from '@signalbox/client';
import { command } from '../command.ts';
import { printRecord, printResult, timeText } from '../print.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import type { Terminal } from '../terminal.ts';
import { shown } from '../text.ts';

const get = command({
  name: 'get',
  summary: 'Show the organization and the web pages that can use session tokens',
  options: serviceOptions,
  examples: [['organization get', 'its name and its origins']],
  needs: [],
  operations: ['getOrganization'],
  async run(input) {
    const found = await serviceOf(input).organization.get();
    await printResult(input, found, () => printOrganization(found, input.terminal));
  },
});

const setOrigins = command({
  name: 'set-origins',
  summary: 'Replace the list of web pages that can use session tokens (CORS)',
  details: 'Without an origin, the list becomes empty: then no page in a browser can use session tokens.',
  arguments: { origin: { about: 'such as https://app.example.com', optional: true, many: true } },
  options: serviceOptions,
  examples: [['organization set-origins https://app.example.com https://example.com', 'two pages']],
  needs: ['organization:manage'],
  operations: ['setOrganization'],
  async run(input) {
    const changed = await serviceOf(input).organization.set({ allowedOrigins: input.args.origin });
    await printResult(input, changed, () => printOrganization(changed, input.terminal));
  },
});

export const commands = [get, setOrigins];

function printOrganization(found: Organization, terminal: Terminal): Promise<void> {
  return printRecord(terminal, [
    ['Organization', found.organizationId],
    ['Name', shown(found.name)],
    ['Origins', found.allowedOrigins.map(shown).join('\n') || 'none'],
    ['Created', timeText(found.createdAt, terminal)],
  ]);
}
