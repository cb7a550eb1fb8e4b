// What the demo's command line says.
import { parseArgs } from 'node:util';
import { type ScenarioName, scenarios } from './scenarios.ts';

const names = Object.keys(scenarios) as ScenarioName[];
const listed = names.map((name) => `  ${name.padEnd(12)} ${scenarios[name].shows}`).join('\n');

export const help = `What Signalbox does, to look at: an Agent works, streams, asks before it acts, and is pushed by webhook.

  npm run demo                       against a service of its own, in a temporary directory
  npm run demo -- --yes              the same without asking you
  npm run demo -- --scenario NAME    another scenario

Scenarios:

${listed}

Options:

  --yes                              approves what the Agent asks for
  --no                               denies it
  --amount NUMBER                    approves a refund, but of this amount
  --url URL                          a service that runs; SIGNALBOX_API_KEY holds an admin key of it, and its
                                     SIGNALBOX_EGRESS_ALLOW lists 127.0.0.1, where the demo's shop is
  --model openai-compatible/NAME     a real model instead of the scripted one; MODEL_API_KEY holds its key, if it needs one
  --base-url URL                     where that model's server answers, up to and with /v1
  --help
`;

export interface Options {
  scenario: ScenarioName;
  /** What to answer to approvals; undefined: a person is asked. */
  answer: Answer | undefined;
  /** A service that runs already. */
  service: { url: string; apiKey: string } | undefined;
  /** Undefined: the scripted model. */
  model: { name: string; baseUrl: string; apiKey: string | undefined } | undefined;
}

export interface Answer {
  decision: 'approved' | 'denied';
  /** In place of the amount that the Agent asks for. */
  amount?: number;
  /** The option that says so. */
  option: string;
}

/** The command was called wrongly. */
export class UsageError extends Error {}

/** Throws `UsageError`; `help` where it was asked for. */
export function readOptions(args: string[], env: NodeJS.ProcessEnv): Options | 'help' {
  const values = parse(args);
  if (values.help) return 'help';
  const scenario = scenarioIn(values.scenario);
  const model = modelIn(values.model, values['base-url'], env.MODEL_API_KEY);
  if (model && scenario === 'worker') throw new UsageError('--model: the worker scenario is a program without a model');
  return {
    scenario,
    answer: answerIn(values),
    service: serviceIn(values.url, env.SIGNALBOX_API_KEY),
    model,
  };
}

function parse(args: string[]) {
  const at = args.indexOf('--scenario');
  if (at >= 0 && (args[at + 1] ?? '-').startsWith('-')) scenarioIn('');
  try {
    return parseArgs({
      args,
      options: {
        scenario: { type: 'string' },
        yes: { type: 'boolean' },
        no: { type: 'boolean' },
        amount: { type: 'string' },
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

function scenarioIn(given = 'approval'): ScenarioName {
  const scenario = names.find((name) => name === given);
  if (!scenario) throw new UsageError(`--scenario takes one of\n\n${listed}`);
  return scenario;
}

function answerIn({ yes, no, amount }: { yes?: boolean; no?: boolean; amount?: string }): Answer | undefined {
  if (no && (yes || amount !== undefined))
    throw new UsageError(`--no and ${yes ? '--yes' : '--amount'} contradict each other`);
  if (no) return { decision: 'denied', option: '--no' };
  if (amount === undefined) return yes ? { decision: 'approved', option: '--yes' } : undefined;
  if (!(Number(amount) > 0)) throw new UsageError(`--amount: "${amount}" is no amount`);
  return { decision: 'approved', amount: Number(amount), option: '--amount' };
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
