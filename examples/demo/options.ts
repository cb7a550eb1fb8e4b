// The demo's command-line options.
import { parseArgs } from 'node:util';
import { type ScenarioName, scenarios } from './scenarios.ts';

const names = Object.keys(scenarios) as ScenarioName[];
const listed = names.map((name) => `  ${name.padEnd(12)} ${scenarios[name].shows}`).join('\n');

export const help = `Shows Signalbox at work: an agent streams text, asks for approval before it acts, and webhooks arrive.

  npm run demo                       starts a service of its own in a temporary directory
  npm run demo -- --yes              the same, approved automatically
  npm run demo -- --scenario NAME    another scenario

Scenarios:

${listed}

Options:

  --yes                              approve what the agent asks for
  --no                               deny it
  --amount NUMBER                    approve a refund of this amount instead
  --url URL                          use a running service. Needs one of its admin keys in SIGNALBOX_API_KEY, and
                                     127.0.0.1 in its SIGNALBOX_EGRESS_ALLOW, for the demo's shop
  --model openai-compatible/NAME     use a real model instead of the scripted one. If it needs a key, set MODEL_API_KEY
  --base-url URL                     the base URL of the model's server, including /v1
  --help
`;

export interface Options {
  scenario: ScenarioName;
  /** How to resolve approvals. Undefined: ask at the terminal. */
  preset: PresetDecision | undefined;
  /** A running service to use. Undefined: start one. */
  service: { url: string; apiKey: string } | undefined;
  /** Undefined: the scripted model. */
  model: { name: string; baseUrl: string; apiKey: string | undefined } | undefined;
}

export interface PresetDecision {
  decision: 'approved' | 'denied';
  /** Replaces the amount that the agent asks for. */
  amount?: number;
  /** The command-line option it came from. */
  option: string;
}

/** The command line is invalid. */
export class UsageError extends Error {}

/** Returns `help` if it was requested. Throws `UsageError`. */
export function readOptions(args: string[], env: NodeJS.ProcessEnv): Options | 'help' {
  const values = parse(args);
  if (values.help) return 'help';
  const scenario = scenarioIn(values.scenario);
  const model = modelIn(values.model, values['base-url'], env.MODEL_API_KEY);
  if (model && scenario === 'worker') throw new UsageError('--model: the worker scenario has no model');
  if (model && scenario === 'outage') throw new UsageError('--model: the outage scenario needs models that fail');
  return {
    scenario,
    preset: presetIn(values),
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
  if (!scenario) throw new UsageError(`--scenario must be one of\n\n${listed}`);
  return scenario;
}

function presetIn({ yes, no, amount }: { yes?: boolean; no?: boolean; amount?: string }): PresetDecision | undefined {
  if (no && (yes || amount !== undefined))
    throw new UsageError(`--no and ${yes ? '--yes' : '--amount'} contradict each other`);
  if (no) return { decision: 'denied', option: '--no' };
  if (amount === undefined) return yes ? { decision: 'approved', option: '--yes' } : undefined;
  if (!(Number(amount) > 0)) throw new UsageError(`--amount: "${amount}" is not a positive number`);
  return { decision: 'approved', amount: Number(amount), option: '--amount' };
}

function serviceIn(url: string | undefined, apiKey: string | undefined): Options['service'] {
  if (url === undefined) return undefined;
  if (!URL.canParse(url)) throw new UsageError(`--url: "${url}" is not a URL`);
  if (!apiKey) throw new UsageError('--url: set SIGNALBOX_API_KEY to an admin key of that service');
  return { url, apiKey };
}

function modelIn(model: string | undefined, baseUrl: string | undefined, apiKey: string | undefined): Options['model'] {
  if (model === undefined) {
    if (baseUrl !== undefined) throw new UsageError('--base-url needs --model openai-compatible/NAME');
    return undefined;
  }
  const [, name] = /^openai-compatible\/(.+)$/.exec(model) ?? [];
  if (!name) throw new UsageError(`--model: "${model}" does not have the form openai-compatible/NAME`);
  if (baseUrl === undefined || !URL.canParse(baseUrl)) {
    throw new UsageError('--model needs the base URL of the server, such as --base-url http://127.0.0.1:11434/v1');
  }
  return { name, baseUrl, apiKey: apiKey || undefined };
}
