// `signalbox agents …`: agents and their versions.
import type { Agent, CreateAgent, UpdateAgent } from '@signalbox/client';
import { linesOfDifference } from '../agent-difference.ts';
import { CommandError, command, type Options, UsageError } from '../command.ts';
import { listOptions, printList, printRecord, printResult, timeText } from '../print.ts';
import { readDefinition } from '../read-input.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import type { Column } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { shown, shownLines } from '../text.ts';
import { mcpTools, models, testTool } from './authoring.ts';
import { tryDraft } from './drafts.ts';

const agent = { agent: { about: 'the id of the agent, agt_…' } } as const;
const file = { file: { about: 'a JSON file with the definition; - is standard input', optional: true } } as const;
const fields = {
  name: { type: 'string', value: 'NAME', about: 'its name' },
  model: { type: 'string', value: 'PROVIDER/MODEL', about: 'its model, such as openai/gpt-6.1-terra' },
  description: { type: 'string', about: 'what it is for' },
  instructions: { type: 'string', about: 'the system prompt' },
} as const satisfies Options;
const overrides = 'Options replace the fields of the file.';

const list = command({
  name: 'list',
  summary: 'List agents, newest first',
  options: {
    search: {
      type: 'string',
      value: 'WORDS',
      about: 'only agents with these words in name, description, model, tools or id',
    },
    model: { type: 'string', value: 'PROVIDER/MODEL', about: 'only agents with this model' },
    archived: { type: 'boolean', about: 'archived agents instead' },
    ...listOptions,
    ...serviceOptions,
  },
  examples: [
    ['agents list', 'the agents of the organization'],
    ['agents list --search refund --model openai/gpt-6.1-terra', 'those with a word and a model'],
  ],
  needs: ['agents:read'],
  operations: ['listAgents'],
  run(input) {
    const { archived, search, model } = input.values;
    const client = serviceOf(input);
    return printList(input, (page) => client.agents.list({ archived, q: search, model, ...page }), {
      id: ({ agentId }) => agentId,
      describe: () => columns(input.terminal),
    });
  },
});

const get = command({
  name: 'get',
  summary: 'Show an agent',
  arguments: agent,
  options: { version: { type: 'integer', min: 1, about: 'an older version' }, ...serviceOptions },
  examples: [
    ['agents get agt_01k9…', 'its model, instructions and tools'],
    ['agents get agt_01k9… --json > agent.json', 'the whole definition, to edit it and pass it to agents update'],
  ],
  needs: ['agents:read'],
  operations: ['getAgent', 'listAgentVersions'],
  async run(input) {
    const { version } = input.values;
    const client = serviceOf(input);
    const found =
      version === undefined
        ? await client.agents.get(input.args.agent)
        : await versionOf(client.agents.versions(input.args.agent, { limit: 100 }), version);
    await printResult(input, found, () => printAgent(found, input.terminal));
  },
});

const create = command({
  name: 'create',
  summary: 'Create an agent from a definition, and print its id',
  details: `${overrides} See docs/guides/tools.md and docs/guides/models.md for what a definition can have.`,
  arguments: file,
  options: { ...fields, ...serviceOptions },
  examples: [
    ['agents create agent.json', 'from a file'],
    ['agents create --name Greeter --model openai/gpt-6.1-terra --instructions "Greet the user."', 'without a file'],
  ],
  needs: ['agents:write'],
  operations: ['createAgent'],
  async run(input) {
    const { args, terminal, command: name } = input;
    const given = givenFields(input.values);
    if (args.file === undefined && Object.keys(given).length === 0)
      throw new UsageError(`${name}: needs FILE, or --name and --model`, `${name} --help`);
    const definition = args.file === undefined ? {} : await readDefinition<CreateAgent>(args.file, terminal);
    const created = await serviceOf(input).agents.create({
      ...writable(definition),
      ...given,
    } as unknown as CreateAgent);
    await printResult(input, created, created.agentId);
  },
});

const update = command({
  name: 'update',
  summary: 'Create a new version of an agent',
  details: `${overrides} If the file has a version, as one from \`agents get --json\` does, the update fails if the agent has a newer one by now.`,
  arguments: { ...agent, ...file },
  options: { ...fields, ...serviceOptions },
  examples: [
    ['agents update agt_01k9… agent.json', 'from a file'],
    ['agents update agt_01k9… --model anthropic/claude-sonnet-5-5', 'only another model'],
  ],
  needs: ['agents:write'],
  operations: ['updateAgent'],
  async run(input) {
    const { args, terminal, command: name } = input;
    const given = givenFields(input.values);
    if (args.file === undefined && Object.keys(given).length === 0)
      throw new UsageError(`${name}: needs FILE or an option`, `${name} --help`);
    const definition = args.file === undefined ? {} : await readDefinition<Partial<Agent>>(args.file, terminal);
    const expectedVersion = definition.version;
    const change = { expectedVersion, ...writable(definition), ...given } as UpdateAgent;
    const updated = await serviceOf(input).agents.update(args.agent, change);
    await printResult(input, updated, `${updated.agentId} is now at version ${updated.version}`);
  },
});

const versions = command({
  name: 'versions',
  summary: 'List the versions of an agent, newest first',
  arguments: agent,
  options: { ...listOptions, ...serviceOptions },
  examples: [['agents versions agt_01k9…', 'what was changed when']],
  needs: ['agents:read'],
  operations: ['listAgentVersions'],
  run(input) {
    const client = serviceOf(input);
    return printList(input, (page) => client.agents.versions(input.args.agent, page), {
      id: ({ version }) => String(version),
      describe: () => [
        { header: 'VERSION', cell: ({ version }) => String(version) },
        { header: 'NAME', cell: ({ name }) => shown(name), shrinks: true },
        { header: 'MODEL', cell: modelOf, shrinks: true },
        { header: 'CREATED', cell: ({ updatedAt }) => timeText(updatedAt, input.terminal) },
      ],
    });
  },
});

const diff = command({
  name: 'diff',
  summary: 'Show what changed between two versions of an agent',
  arguments: {
    ...agent,
    from: { about: 'a version (the one before TO)', optional: true },
    to: { about: 'a version (the newest)', optional: true },
  },
  options: serviceOptions,
  examples: [
    ['agents diff agt_01k9…', 'the last change'],
    ['agents diff agt_01k9… 3 7', 'from version 3 to version 7'],
  ],
  needs: ['agents:read'],
  operations: ['getAgent', 'listAgentVersions'],
  async run(input) {
    const { args, terminal } = input;
    const client = serviceOf(input);
    const to = wholeNumber(args.to, input.command) ?? (await client.agents.get(args.agent)).version;
    const from = wholeNumber(args.from, input.command) ?? to - 1;
    if (from < 1) throw new CommandError(`${args.agent} has only version ${to}.`);
    const all = () => client.agents.versions(args.agent, { limit: 100 });
    const [before, after] = [await versionOf(all(), from), await versionOf(all(), to)];
    if (input.values.json) return terminal.stdout.write(`${JSON.stringify({ before, after })}\n`);
    const lines = linesOfDifference(writable(before), writable(after));
    const styles = { '-': 'red', '+': 'green', ' ': undefined, '@': 'bold' } as const;
    for (const { mark, text } of lines)
      await terminal.stdout.write(
        `${terminal.stdout.styled(styles[mark], mark === '@' ? shown(text) : `${mark} ${shown(text)}`)}\n`,
      );
    if (lines.length === 0) await terminal.stderr.write(`Versions ${from} and ${to} are the same.\n`);
  },
});

const archive = command({
  name: 'archive',
  summary: 'Archive an agent: current turns finish, new sessions and messages are refused',
  arguments: agent,
  options: serviceOptions,
  examples: [['agents archive agt_01k9…', 'retire an agent']],
  needs: ['agents:write'],
  operations: ['archiveAgent'],
  async run(input) {
    const archived = await serviceOf(input).agents.archive(input.args.agent);
    await printResult(input, archived, `archived: ${input.args.agent}`);
  },
});

export const commands = [list, get, create, update, tryDraft, models, testTool, mcpTools, versions, diff, archive];

function givenFields({ name, model, description, instructions }: Record<keyof typeof fields, string | undefined>) {
  const given = Object.entries({ name, model, description, instructions });
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

/** The fields that a caller can set. */
function writable<T extends Partial<Agent> | CreateAgent>(definition: T): object {
  const { agentId, version, createdAt, updatedAt, archivedAt, ...rest } = definition as Partial<Agent>;
  return rest;
}

async function versionOf(versions: AsyncIterable<Agent>, version: number): Promise<Agent> {
  for await (const one of versions) if (one.version === version) return one;
  throw new CommandError(`There is no version ${version} of this agent. \`signalbox agents versions\` lists them.`);
}

function wholeNumber(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`${name}: a version is a whole number`, `${name} --help`);
  return Number(text);
}

function modelOf({ model: { provider, model, queue } }: Agent): string {
  return shown(`${provider}/${model ?? queue ?? ''}`);
}

function columns(terminal: Terminal): Column<Agent>[] {
  return [
    { header: 'AGENT', cell: ({ agentId }) => agentId },
    { header: 'NAME', cell: ({ name }) => shown(name), shrinks: true },
    { header: 'MODEL', cell: modelOf, shrinks: true },
    { header: 'TOOLS', cell: ({ tools }) => String(tools.length), optional: true },
    { header: 'VERSION', cell: ({ version }) => String(version), optional: true },
    { header: 'UPDATED', cell: ({ updatedAt }) => timeText(updatedAt, terminal), optional: true },
  ];
}

function printAgent(found: Agent, terminal: Terminal): Promise<void> {
  const tools = found.tools.map((tool) => ('name' in tool ? `${shown(tool.name)} (${tool.type})` : tool.type));
  return printRecord(terminal, [
    ['Agent', found.agentId],
    ['Name', shown(found.name)],
    ['Description', shownLines(found.description)],
    ['Version', String(found.version)],
    ['Model', modelOf(found)],
    ['Instructions', shownLines(found.instructions)],
    ['Tools', tools.join('\n')],
    ['Metadata', Object.keys(found.metadata).length > 0 ? shown(JSON.stringify(found.metadata)) : ''],
    ['Updated', timeText(found.updatedAt, terminal)],
    ['Archived', timeText(found.archivedAt, terminal)],
  ]);
}
