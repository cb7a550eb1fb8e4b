// What authors of agents ask for: `signalbox agents models`, `agents test-tool` and `agents mcp-tools`.
import type { Agent, CreateAgent, ToolTest } from '@signalbox/client';
import { calledProviders, modelServer, modelServers } from '@signalbox/contract';
import { CommandError, command, type Options, UsageError } from '../command.ts';
import { printWithDollars } from '../dollars.ts';
import { printRecord, printResult } from '../print.ts';
import { readDefinition } from '../read-input.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import { Table } from '../table.ts';
import { shown, shownLines } from '../text.ts';

const where = {
  environment: { type: 'string', value: 'NAME', required: true, about: 'the environment whose secrets are used' },
} as const satisfies Options;

const toolArguments = {
  agent: { about: 'the id of the agent, agt_…, or a JSON file with its definition' },
  tool: { about: 'the name of the tool' },
} as const;

const serverNames = modelServers.map(({ name }) => name).join(', ');

export const models = command({
  name: 'models',
  summary: 'List the models that a provider offers',
  details: `In place of a provider, name a server that speaks OpenAI’s chat completions: ${serverNames}. Its address and the usual name of its key are in docs/guides/models.md.`,
  arguments: { provider: { about: `${calledProviders.join(', ')}, or a server` } },
  options: {
    ...where,
    'base-url': { type: 'string', value: 'URL', about: 'of a gateway, or of a server of your own' },
    'key-secret': { type: 'string', value: 'SECRET', about: 'the secret with the key, if not the usual one' },
    ...serviceOptions,
  },
  examples: [
    ['agents models openai --environment production', 'what the key of production may use'],
    ['agents models groq --environment production', 'the same of a server with OpenAI’s API'],
  ],
  needs: ['agents:write'],
  operations: ['listModels'],
  async run(input) {
    const { values, args, terminal } = input;
    const server = modelServer(args.provider);
    const { 'base-url': baseUrl = server?.baseUrl, 'key-secret': apiKeySecret = server?.keyName } = values;
    const list = await serviceOf(input).agents.models(values.environment, {
      // The service refuses an unknown one, and says which there are.
      provider: server ? 'openai-compatible' : (args.provider as 'openai'),
      ...(baseUrl !== undefined && { baseUrl }),
      ...(apiKeySecret !== undefined && { apiKeySecret }),
    });
    if (values.json) await printResult(input, list, '');
    else if (list.models.length > 0) {
      await printWithDollars(terminal, list, ({ price }) =>
        new Table(terminal.stdout, [
          { header: 'MODEL', cell: ({ model }: (typeof list.models)[number]) => shown(model) },
          { header: 'CONTEXT', cell: ({ contextTokens }) => contextTokens?.toLocaleString('en') ?? '' },
          { header: 'INPUT', cell: ({ input }) => input?.join(', ') ?? '', optional: true },
          {
            header: 'USD PER MILLION',
            cell: ({ prices }) => (prices ? price(prices) : ''),
            optional: true,
          },
          { header: 'ENDS', cell: ({ endsAt }) => endsAt ?? '', optional: true },
        ]).print(list.models),
      );
    }
    if (!list.problem) return 0;
    await terminal.stderr.write(`${shown(list.problem.message)}\n`);
    return 1;
  },
});

export const testTool = command({
  name: 'test-tool',
  summary: 'Send the request of an http tool once, and show request and response',
  details: 'It runs without an approval. The exit status is 1 if the tool’s server did not accept the request.',
  arguments: toolArguments,
  options: {
    ...where,
    input: { type: 'string', value: 'JSON', about: 'what a model would give ({})' },
    yes: { type: 'boolean', about: 'also a tool that has an effect' },
    ...serviceOptions,
  },
  examples: [
    [
      `agents test-tool agt_01k9… find_order --environment staging --input '{"orderId":"1041"}'`,
      'whether the address, the secret and the response are right',
    ],
  ],
  needs: ['agents:write', 'agents:read', 'sessions:run'],
  operations: ['testTool', 'getAgent'],
  async run(input) {
    const { values, args, command: name } = input;
    const tool = (await toolsOf(input)).find((one) => 'name' in one && one.name === args.tool);
    if (tool?.type !== 'http') throw new CommandError(`The agent has no http tool "${shown(args.tool)}".`);
    const isEffectful = tool.effectful ?? tool.request.method !== 'GET';
    if (isEffectful && !values.yes)
      throw new UsageError(`${name}: ${tool.name} has an effect; send its request with --yes`, `${name} --help`);
    const test = await serviceOf(input).agents.testTool(values.environment, {
      tool,
      ...(values.input !== undefined && { input: jsonIn(values.input, name) }),
    });
    if (values.json) await printResult(input, test, '');
    else await printTest(test, input);
    return test.error === undefined ? 0 : 1;
  },
});

export const mcpTools = command({
  name: 'mcp-tools',
  summary: 'List the tools that an MCP server of an agent offers now',
  arguments: toolArguments,
  options: { ...where, ...serviceOptions },
  examples: [['agents mcp-tools agt_01k9… crm --environment staging', 'names for allowedTools']],
  needs: ['agents:write', 'agents:read', 'sessions:run'],
  operations: ['listMcpTools', 'getAgent'],
  async run(input) {
    const { values, args, terminal } = input;
    const server = (await toolsOf(input)).find((one) => 'name' in one && one.name === args.tool);
    if (server?.type !== 'mcp') throw new CommandError(`The agent has no MCP server "${shown(args.tool)}".`);
    const list = await serviceOf(input).agents.mcpTools(values.environment, { server });
    if (values.json) await printResult(input, list, '');
    else if (list.tools.length > 0) {
      await new Table(terminal.stdout, [
        { header: 'TOOL', cell: ({ name }: (typeof list.tools)[number]) => shown(name) },
        { header: 'APPROVAL', cell: ({ needsApproval }) => (needsApproval ? 'yes' : 'no') },
        { header: 'DESCRIPTION', cell: ({ description }) => shown(description), shrinks: true },
      ]).print(list.tools);
    }
    for (const { name, reason } of list.leftOut)
      await terminal.stderr.write(`Left out: ${shown(name)} ${shown(reason)}\n`);
    if (list.problem === null) return 0;
    await terminal.stderr.write(`${shown(list.problem)}\n`);
    return 1;
  },
});

type AuthoringInput = Parameters<typeof serviceOf>[0] & { args: { agent: string } };

/** The tools of a saved agent, or of a definition in a file. */
async function toolsOf(input: AuthoringInput & { terminal: Parameters<typeof readDefinition>[1] }) {
  const { agent } = input.args;
  if (agent.startsWith('agt_')) return (await serviceOf(input).agents.get(agent)).tools;
  return (await readDefinition<Partial<Agent> & Partial<CreateAgent>>(agent, input.terminal)).tools ?? [];
}

function jsonIn(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${name}: --input is not JSON: ${(error as Error).message}`, `${name} --help`);
  }
}

async function printTest(test: ToolTest, { terminal }: { terminal: Parameters<typeof printRecord>[0] }): Promise<void> {
  const headers = (all: readonly string[][]) => all.map(([name, value]) => `${shown(name!)}: ${shown(value!)}`);
  const { request, response, output, error } = test;
  await printRecord(terminal, [
    ['Request', request ? [`${request.method} ${shown(request.url)}`, ...headers(request.headers)].join('\n') : ''],
    ['Body', request?.body ? shownLines(request.body) : ''],
    ['Response', response ? [`HTTP ${response.status}`, ...headers(response.headers)].join('\n') : ''],
    ['Took', `${test.durationMs} ms`],
    error === undefined
      ? ['Result', shownLines(typeof output === 'string' ? output : JSON.stringify(output ?? null, null, 2))]
      : ['Error', shownLines(error)],
  ]);
}
