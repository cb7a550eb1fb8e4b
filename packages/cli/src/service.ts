// The connection of a command to the service. It uses the public client, like any other program.
import { Signalbox, version } from '@signalbox/client';
import { type Input, type Options, UsageError } from './command.ts';

const group = 'Connection and output';

/** Options of every command that calls a service. */
export const serviceOptions = {
  json: { type: 'boolean', about: 'print one JSON object per line, in the format of the API', group },
  url: {
    type: 'string',
    value: 'URL',
    about: 'the service (http://127.0.0.1:4500); set the API key in SIGNALBOX_API_KEY',
    variable: 'SIGNALBOX_URL',
    group,
  },
} as const satisfies Options;

type ServiceInput = Pick<Input, 'terminal' | 'command'> & { values: { url?: string | undefined } };

/** Throws `UsageError` if the key is missing or the URL is invalid. `otherwise` names an alternative to the key. */
export function serviceOf({ values, terminal, command }: ServiceInput, otherwise = ''): Signalbox {
  const { SIGNALBOX_API_KEY: apiKey, SIGNALBOX_URL: url } = terminal.env;
  // There is no option for the key, because other users of the machine can read the options of a process.
  if (!apiKey) throw new UsageError(`${command}: set SIGNALBOX_API_KEY${otherwise}`, `${command} --help`);
  try {
    return new Signalbox({ apiKey, baseUrl: values.url ?? (url || undefined), userAgent: `signalbox-cli/${version}` });
  } catch (error) {
    throw new UsageError(`${command}: ${(error as Error).message}`, `${command} --help`);
  }
}
