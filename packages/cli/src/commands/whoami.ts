// `signalbox whoami`: which key this is, and what it can do.
import { command } from '../command.ts';
import { printRecord, printResult } from '../print.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import { shown } from '../text.ts';
import { printKey } from './keys.ts';

const whoami = command({
  name: '',
  summary: 'Show the organization and the API key that commands use, and what the key can do',
  options: serviceOptions,
  examples: [['whoami', 'after a 403, or before something dangerous']],
  needs: [],
  operations: ['getMe'],
  async run(input) {
    const me = await serviceOf(input).me();
    await printResult(input, me, async () => {
      const { organizationId, name } = me.organization;
      const organization = [['Organization', `${shown(name)} (${organizationId})`]] as const;
      if (me.apiKey) await printKey(me.apiKey, input.terminal, serviceOf(input), organization);
      else await printRecord(input.terminal, organization);
    });
  },
});

export const commands = [whoami];
