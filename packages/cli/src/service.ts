// The connection of a command to the service. It uses the public client, like any other program.
import { Signalbox, version } from '@signalbox/client';
import { type Input, type Options, UsageError } from './command.ts';
import { connectionOf } from './profiles.ts';

const group = 'Connection and output';

/** Options of every command that calls a service: which one, and by which key. */
export const connectionOptions = {
  url: {
    type: 'string',
    value: 'URL',
    about: 'the service (http://127.0.0.1:4500), with its API key in SIGNALBOX_API_KEY',
    variable: 'SIGNALBOX_URL',
    group,
  },
  profile: {
    type: 'string',
    value: 'NAME',
    about: 'the service and the API key that `signalbox login` stored under this name',
    variable: 'SIGNALBOX_PROFILE',
    group,
  },
} as const satisfies Options;

/** Options of commands whose result can be read by programs as well. */
export const serviceOptions = {
  json: { type: 'boolean', about: 'print one JSON object per line, in the format of the API', group },
  ...connectionOptions,
} as const satisfies Options;

type ServiceInput = Pick<Input, 'terminal' | 'command'> & {
  values: { url?: string | undefined; profile?: string | undefined };
};

/** Throws `UsageError` if the key is missing or the URL is invalid. `otherwise` names an alternative to the key. */
export function serviceOf({ values, terminal, command }: ServiceInput, otherwise = ''): Signalbox {
  // There is no option for the key, because other users of the machine can read the options of a process.
  const { apiKey, url } = connectionOf(values, terminal.env, command, otherwise);
  try {
    return new Signalbox({ apiKey, baseUrl: url, userAgent: `signalbox-cli/${version}` });
  } catch (error) {
    throw new UsageError(`${command}: ${(error as Error).message}`, `${command} --help`);
  }
}
