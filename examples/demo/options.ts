// What the demo's command line says.
import { parseArgs } from 'node:util';

export const help = `The main job of Signalbox, to look at: an Agent works, asks before it acts, streams, and is pushed by webhook.

  npm run demo                       against a service of its own, in a temporary directory
  npm run demo -- --yes              the same without asking you

  --yes                              approves what the Agent asks for
  --no                               denies it
  --url URL                          a service that runs; SIGNALBOX_API_KEY holds an admin key of it, and its
                                     SIGNALBOX_EGRESS_ALLOW lists 127.0.0.1, where the demo's shop is
  --model openai-compatible/NAME     a real model instead of the scripted one; MODEL_API_KEY holds its key, if it needs one
  --base-url URL                     where that model's server answers, up to and with /v1
  --help
`;

export interface Options {
  /** What to answer to an approval; undefined: a person is asked. */
  decision: 'approved' | 'denied' | undefined;
  /** A service that runs already. */
  service: { url: string; apiKey: string } | undefined;
  /** Undefined: the scripted model. */
  model: { name: string; baseUrl: string; apiKey: string | undefined } | undefined;
}

/** The command was called wrongly. */
export class UsageError extends Error {}

/** Throws `UsageError`; `help` where it was asked for. */
export function readOptions(args: string[], env: NodeJS.ProcessEnv): Options | 'help' {
  const values = parse(args);
  if (values.help) return 'help';
  if (values.yes && values.no) throw new UsageError('--yes and --no contradict each other');
  return {
    decision: values.yes ? 'approved' : values.no ? 'denied' : undefined,
    service: serviceIn(values.url, env.SIGNALBOX_API_KEY),
    model: modelIn(values.model, values['base-url'], env.MODEL_API_KEY),
  };
}

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      options: {
        yes: { type: 'boolean' },
        no: { type: 'boolean' },
        url: { type: 'string' },
        model: { type: 'string' },
        'base-url': { type: 'string' },
        help: { type: 'boolean' },
      },
    }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function serviceIn(url: string | undefined, apiKey: string | undefined): Options['service'] {
  if (url === undefined) return undefined;
  if (!URL.canParse(url)) throw new UsageError(`--url: "${url}" is not a URL`);
  if (!apiKey) throw new UsageError('--url needs an admin key of that service in SIGNALBOX_API_KEY');
  return { url, apiKey };
}

function modelIn(model: string | undefined, baseUrl: string | undefined, apiKey: string | undefined): Options['model'] {
  if (model === undefined) {
    if (baseUrl !== undefined) throw new UsageError('--base-url belongs to --model openai-compatible/NAME');
    return undefined;
  }
  const [, name] = /^openai-compatible\/(.+)$/.exec(model) ?? [];
  if (!name) throw new UsageError(`--model: "${model}" is not openai-compatible/NAME`);
  if (baseUrl === undefined || !URL.canParse(baseUrl)) {
    throw new UsageError('--model needs the address of its server, such as --base-url http://127.0.0.1:11434/v1');
  }
  return { name, baseUrl, apiKey: apiKey || undefined };
}
