// `signalbox listen`: an environment's deliveries at a local receiver, without a public address.
import { type ChunkType, type Envelope, webhooks } from '@signalbox/client';
import { command, UsageError } from '../command.ts';
import { environmentFor, environmentOption } from '../environment.ts';
import { envelopeText } from '../listening/envelope-text.ts';
import { type Attempt, Forwarder } from '../listening/forwarder.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import type { Terminal } from '../terminal.ts';
import { shown } from '../text.ts';

const listen = command({
  name: '',
  summary: "Receive an environment's webhooks on this machine",
  details:
    'Forwards what a webhook subscription would deliver to a local receiver: the same body, headers and signatures, in the order of each ' +
    'session. The environment needs no subscription, and one that it has is not affected. A receiver that is not running is tried again ' +
    'every 2 s; one that responds with an error after 5 s, 30 s and 2 min. Nothing is kept while the command is not running. Set ' +
    'SIGNALBOX_SIGNING_SECRET to keep the same signing secret; without it, each start prints a new one.',
  options: {
    environment: environmentOption,
    'forward-to': {
      type: 'string',
      value: 'URL',
      about: 'the receiver, such as http://localhost:3000/hook; without it, only lists',
    },
    types: {
      type: 'list',
      value: 'TYPE,TYPE',
      about: "chunk types (the types of the environment's subscription, or the default)",
    },
    agent: { type: 'string', value: 'AGENT', about: 'only sessions of this agent' },
    since: { type: 'time', about: 'start with what happened since then (now)' },
    ...serviceOptions,
  },
  variables: { SIGNALBOX_SIGNING_SECRET: { about: 'the signing secret, whsec_…' } },
  examples: [['listen --environment staging --forward-to http://localhost:3000/hook', 'develop a receiver']],
  needs: ['sessions:read'],
  operations: ['streamEnvironment'],
  async run(input) {
    const { values, terminal, command: name } = input;
    const { agent: agentId, since, json } = values;
    const client = serviceOf(input);
    const target = values['forward-to'];
    const secret = secretOf(terminal, name);
    if (target !== undefined) requireReceiver(target, name);
    const environment = await environmentFor(input, client);
    const over = new AbortController();
    let isFirst = true;
    const onConnection = (state: 'open' | 'lost') => {
      const isNew = isFirst;
      isFirst = false;
      if (state === 'lost') void terminal.stderr.write('Connection lost; reconnecting.\n');
      else if (!isNew) void terminal.stderr.write('Reconnected.\n');
      else void terminal.stderr.write(ready(terminal, environment, target, secret));
    };
    const forwarder =
      target === undefined
        ? undefined
        : new Forwarder({
            url: target,
            secret,
            clock: terminal.clock,
            onAttempt: (envelope, attempt) => void print(terminal, json, envelope, attempt),
            signal: over.signal,
          });
    const types = values.types as ChunkType[] | undefined;
    const stream = client.environments.stream(environment, { types, agentId, cursor: since, onConnection });
    try {
      for await (const envelope of stream) {
        if (forwarder) await forwarder.accept(envelope);
        else await print(terminal, json, envelope, undefined);
      }
    } finally {
      over.abort();
    }
  },
});

export const commands = [listen];

function secretOf({ env }: Terminal, name: string): string {
  const { SIGNALBOX_SIGNING_SECRET: given } = env;
  if (!given) return webhooks.createSigningSecret();
  if (webhooks.isSigningSecret(given)) return given;
  throw new UsageError(`${name}: SIGNALBOX_SIGNING_SECRET must be whsec_ and the base64 of 32 bytes`, `${name} --help`);
}

function requireReceiver(text: string, name: string): void {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url && /^https?:$/.test(url.protocol) && !url.username && !url.password) return;
  throw new UsageError(`${name}: --forward-to must be an http or https URL without a password`, `${name} --help`);
}

function ready({ stderr, env }: Terminal, environment: string, target: string | undefined, secret: string): string {
  if (target === undefined) return `Listening to "${environment}". Ctrl-C stops.\n`;
  const signed = env.SIGNALBOX_SIGNING_SECRET
    ? 'Deliveries are signed with SIGNALBOX_SIGNING_SECRET.'
    : `Signing secret of this listener: ${stderr.styled('bold', secret)}`;
  return `Forwarding deliveries of "${environment}" to ${target}. Ctrl-C stops.\n${signed}\n`;
}

async function print(
  { stdout, clock }: Terminal,
  json: boolean | undefined,
  envelope: Envelope,
  attempt: Attempt | undefined,
): Promise<void> {
  const { sessionId, cursor } = envelope;
  if (json) {
    await stdout.write(`${JSON.stringify(attempt ? { sessionId, cursor, ...attempt } : envelope)}\n`);
    return;
  }
  const time = stdout.styled('dim', new Date(clock.now()).toTimeString().slice(0, 8));
  const what = `${time} ${shown(sessionId)} ${shown(envelopeText(envelope))}`;
  await stdout.write(`${what}${attempt ? outcomeText(stdout, attempt) : ''}\n`);
}

function outcomeText(stdout: Terminal['stdout'], { attempt, status, error, durationMs, retryMs }: Attempt): string {
  const words = { connect: 'no connection', timeout: 'no response within 15 s', status: String(status) };
  const result = stdout.styled(error === null ? 'green' : 'red', error === null ? String(status) : words[error]);
  const retry =
    error === null
      ? attempt > 1
        ? `, attempt ${attempt}`
        : ''
      : retryMs === null
        ? `, given up after ${attempt} ${attempt === 1 ? 'attempt' : 'attempts'}`
        : `, retry in ${retryMs / 1000} s`;
  return ` → ${result}${stdout.styled('dim', ` ${durationMs} ms${retry}`)}`;
}
