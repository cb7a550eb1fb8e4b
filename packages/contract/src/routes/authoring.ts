import { ListMcpTools, ListModels, McpToolList, ModelList, TestTool, ToolTest } from '../authoring.ts';
import { EnvironmentParams } from '../environments.ts';
import { one, table } from './route.ts';

export const authoringRoutes = table({
  listModels: {
    method: 'GET',
    path: '/environments/{env}/models',
    scope: 'agents:write',
    environments: 'closed',
    tag: 'Agents',
    summary: 'List the models of a provider',
    description:
      'Requests the list from the provider with the key that an agent in the environment would use, and adds what is known about each model. A list is kept for five minutes. If the provider does not respond, `problem` says why.',
    params: EnvironmentParams,
    query: ListModels,
    status: 200,
    result: one('modelList', ModelList),
    errors: ['not_found', 'url_not_allowed'],
  },
  testTool: {
    method: 'POST',
    path: '/environments/{env}/tool_tests',
    scope: 'agents:write',
    alsoScope: 'sessions:run',
    environments: 'closed',
    tag: 'Agents',
    summary: 'Test an http tool',
    description:
      'Sends the request of the tool once, with secrets of the environment and without an approval, and shows request and response without the secrets. The event log names the caller and the host.',
    params: EnvironmentParams,
    body: TestTool,
    status: 200,
    result: one('toolTest', ToolTest),
    errors: ['not_found', 'url_not_allowed'],
    actsOutside: true,
  },
  listMcpTools: {
    method: 'POST',
    path: '/environments/{env}/mcp_tool_lists',
    scope: 'agents:write',
    alsoScope: 'sessions:run',
    environments: 'closed',
    tag: 'Agents',
    summary: 'List the tools of an MCP server',
    description: 'Connects to the server with secrets of the environment. If it does not respond, `problem` says why.',
    params: EnvironmentParams,
    body: ListMcpTools,
    status: 200,
    result: one('mcpToolList', McpToolList),
    errors: ['not_found', 'url_not_allowed'],
    repeatable: true,
  },
});
