// Definitions that run without being saved: `signalbox agents try` and `signalbox sessions draft`.
import type { Agent, CreateAgent, Draft } from '@signalbox/client';
import { CommandError, command, UsageError } from '../command.ts';
import { printResult } from '../print.ts';
import { readDefinition } from '../read-input.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import type { Terminal } from '../terminal.ts';
import { session, watchSession } from './session-history.ts';

export const tryDraft = command({
  name: 'try',
  summary: 'Run a definition without saving it, and show what it does',
  details:
    'FILE has a definition, as from `agents get --json`, or a draft, as from `sessions draft`: {"definition": {…}, "mocks": {…}}. A mocked tool is not run: its calls get the result that you give.',
  arguments: { file: { about: 'a JSON file with the definition or the draft; - is standard input' } },
  options: {
    environment: { type: 'string', value: 'NAME', required: true, about: 'the environment it runs in' },
    input: { type: 'string', value: 'TEXT', required: true, about: 'the message' },
    agent: { type: 'string', value: 'AGENT', about: 'the agent that the session belongs to' },
    mock: { type: 'string', value: 'TOOL=JSON', multiple: true, about: 'the result of every call of a tool' },
    'keep-approvals': { type: 'boolean', about: 'ask for the approvals of mocked tools as well' },
    'no-watch': { type: 'boolean', about: 'only print the id of the session' },
    ...serviceOptions,
  },
  examples: [
    ['agents try agent.json --environment staging --input "Where is order 1042?"', 'try a change before you save it'],
    [
      `agents try agent.json --environment staging --input "Refund it" --mock refund_order='{"ok":true}'`,
      'without refunding anything',
    ],
  ],
  needs: ['sessions:run', 'agents:write', 'sessions:read'],
  operations: ['openSession', 'streamSession'],
  async run(input) {
    const { values, args, terminal } = input;
    const { definition, mocks = {} } = await readDraft(args.file, terminal);
    const given = (values.mock ?? []).map((text) => mockOf(text, input.command));
    const all = Object.entries({ ...mocks, ...Object.fromEntries(given) });
    const kept = values['keep-approvals'] ? { approval: 'keep' as const } : {};
    const client = serviceOf(input);
    const opened = await client.sessions.open({
      draft: { definition, mocks: Object.fromEntries(all.map(([name, mock]) => [name, { ...mock, ...kept }])) },
      ...(values.agent !== undefined && { agentId: values.agent }),
      environment: values.environment,
      input: values.input,
      closeOnIdle: true,
    });
    await printResult(input, opened, opened.sessionId);
    if (values['no-watch']) return;
    await watchSession(client, opened, { cursor: null, json: values.json, untilIdle: true, terminal });
  },
});

export const sessionDraft = command({
  name: 'draft',
  summary: 'Print the draft that a session runs, to run it again with `agents try`',
  arguments: session,
  options: serviceOptions,
  examples: [['sessions draft ses_01k9… > draft.json', 'keep what was tried']],
  needs: ['agents:read'],
  operations: ['getSessionDraft'],
  async run(input) {
    const draft = await serviceOf(input).sessions.draft(input.args.session);
    await printResult(input, draft, JSON.stringify(draft, null, 2));
  },
});

/** A file with a definition is a draft without mocks. */
export async function readDraft(file: string, terminal: Terminal): Promise<Draft> {
  const read = await readDefinition<Draft | CreateAgent>(file, terminal);
  if ('definition' in read) return read;
  const { agentId, version, createdAt, updatedAt, archivedAt, ...definition } = read as Partial<Agent>;
  return { definition: definition as CreateAgent };
}

function mockOf(text: string, fullName: string): [string, NonNullable<Draft['mocks']>[string]] {
  const at = text.indexOf('=');
  if (at < 1) throw new UsageError(`${fullName}: --mock must be TOOL=JSON`, `${fullName} --help`);
  const name = text.slice(0, at);
  try {
    return [name, { results: [{ output: JSON.parse(text.slice(at + 1)) }] }];
  } catch {
    throw new CommandError(`The result of ${name} is not JSON. A text needs quotes: --mock '${name}="text"'`);
  }
}
