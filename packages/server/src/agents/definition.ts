// Validation of a definition beyond the schemas of the contract.
import {
  type Approvers,
  baseUrlProblem,
  cloudUrlForm,
  type FieldError,
  type McpTool,
  type Model,
  ownProvider,
  type Tool,
  type ToolApproval,
  toolNameOf,
  webSearchProblem,
} from '@signalbox/contract';
import type { Egress } from '../egress/egress.ts';
import { allowedUrlsHint, UrlNotAllowed } from '../egress/errors.ts';
import { ApiError } from '../lib/api-error.ts';
import { isOfObject, NOT_OF_OBJECT } from '../schemas/schemas.ts';
import { checkTemplate } from '../tools/request/template.ts';
import { approvalOf, isSinglePolicy } from '../tools/tool/turn-tool.ts';
import type { Definition } from './agents.ts';

/** Errors in one response: as many as someone corrects at once. */
const MAX_ERRORS = 20;

/** Throws 400 with what is wrong, 422 `tool_unsupported`, or 422 `url_not_allowed`. Schemas, and what must fit them, are checked by fit-errors.ts. */
export function checkDefinition(definition: Pick<Definition, 'model' | 'tools'>, egress: Egress): void {
  const errors: FieldError[] = [...checkModels(definition)];
  const names = new Set<string>();
  for (const [index, tool] of definition.tools.entries()) {
    const path = `tools[${index}]`;
    const name = toolNameOf(tool);
    if (names.has(name))
      errors.push({
        path: tool.type === 'web_search' ? path : `${path}.name`,
        message: `"${name}" is already the name of another tool`,
      });
    names.add(name);
    const owner = definition.tools.find(
      (other) => other.type === 'mcp' && other.name !== name && mayOffer(other, tool),
    );
    if (owner?.type === 'mcp')
      errors.push({ path: `${path}.name`, message: `is reserved for the tools of the server "${owner.name}"` });
    for (const { path: inner, message } of checkTool(tool)) errors.push({ path: `${path}.${inner}`, message });
  }
  refuse(errors);
  checkSearch(definition);

  for (const {
    model: { baseUrl },
    path,
  } of namedModels(definition)) {
    if (baseUrl !== undefined) checkUrl(egress, baseUrl, `${path}.baseUrl`);
  }
  for (const [index, tool] of definition.tools.entries()) {
    if (tool.type === 'http') checkUrl(egress, tool.request.url, `tools[${index}].request.url`);
    if (tool.type === 'mcp') checkUrl(egress, tool.url, `tools[${index}].url`);
  }
}

/** Throws 400 with the errors, if there are any. */
export function refuse(errors: readonly FieldError[]): void {
  const [first] = errors;
  if (!first) return;
  throw new ApiError('invalid_request', `${first.path}: ${first.message}`, { errors: errors.slice(0, MAX_ERRORS) });
}

/** Whether an MCP server could offer a tool with the other's name, or with that of one of its tools: a model can't distinguish them. */
function mayOffer({ name }: McpTool, other: Tool): boolean {
  return (other.type === 'mcp' ? `${other.name}__` : toolNameOf(other)).startsWith(`${name}__`);
}

/** What is wrong with a tool, by paths within it. */
function checkTool(tool: Tool): FieldError[] {
  const errors: FieldError[] = approvalsOf(tool).flatMap(({ path, approval }) => {
    const { by } = approvalOf(approval);
    return by ? checkApprovers(by).map((error) => ({ ...error, path: `${path}.by.${error.path}` })) : [];
  });
  if ('inputSchema' in tool && !isOfObject(tool.inputSchema))
    errors.push({ path: 'inputSchema', message: NOT_OF_OBJECT });
  if (tool.type === 'http') {
    const problems = checkTemplate(tool.request);
    errors.push(...problems.map(({ path, message }) => ({ path: `request.${path}`, message })));
  }
  if (tool.type === 'mcp') {
    // A server's URL can't contain input: there is none yet when its tools are listed.
    if (/\{\{/.test(tool.url)) errors.push({ path: 'url', message: 'must not contain placeholders' });
    const inputs = Object.entries(tool.headers ?? {}).filter(([, value]) => /\{\{\s*input\b/.test(value));
    for (const [name] of inputs)
      errors.push({
        path: `headers.${name}`,
        message: 'can contain only {{secrets.NAME}}, {{session.endUser.id}} and {{session.endUser.name}}',
      });
    const request = {
      method: 'POST' as const,
      url: 'https://mcp.invalid/',
      ...(tool.headers && { headers: tool.headers }),
    };
    errors.push(...checkTemplate(request));
  }
  return errors;
}

/** What no caller could meet, or what contradicts itself. */
function checkApprovers({ people, roles, keys, endUser, notRequester, count = 1 }: Approvers): FieldError[] {
  const errors: FieldError[] = [];
  if (people && roles) errors.push({ path: 'roles', message: 'must not be given with people, which admits all roles' });
  if (endUser && notRequester)
    errors.push({ path: 'notRequester', message: 'must not be given with endUser: the session is for the end user' });
  if (count > 1 && endUser && !people && !roles && !keys)
    errors.push({ path: 'count', message: 'must be 1: a session has one end user' });
  return errors;
}

/** Each policy of a tool, with its path in it. */
export function approvalsOf(tool: Tool): { path: string; approval: ToolApproval }[] {
  const { approval } = tool.type === 'web_search' ? {} : tool;
  if (approval === undefined) return [];
  if (isSinglePolicy(approval)) return [{ path: 'approval', approval }];
  return Object.entries(approval).map(([name, one]) => ({ path: `approval.${name}`, approval: one }));
}

/** Every model that a definition names. */
function namedModels({ model }: Pick<Definition, 'model'>): { model: Model; path: string }[] {
  const { fallbacks = [], compaction, ...own } = model;
  return [
    { model: own, path: 'model' },
    ...fallbacks.map((one, index) => ({ model: one, path: `model.fallbacks[${index}]` })),
    ...(compaction ? [{ model: compaction, path: 'model.compaction' }] : []),
  ];
}

/** Throws 422 `tool_unsupported` if one of the models can't have the agent's `web_search`. */
function checkSearch({ model, tools }: Pick<Definition, 'model' | 'tools'>): void {
  const index = tools.findIndex(({ type }) => type === 'web_search');
  const tool = tools[index];
  if (tool?.type !== 'web_search') return;
  for (const { model: one, path } of namedModels({ model })) {
    // It gets no tools.
    if (path === 'model.compaction') continue;
    const problem = webSearchProblem(tool, one, tools);
    if (!problem) continue;
    const of = `tools[${index}]${problem.field === null ? '' : `.${problem.field}`}`;
    const message = `${problem.message}${path === 'model' ? '' : ` (${path})`}`;
    throw new ApiError('tool_unsupported', `${of}: ${message}`, { errors: [{ path: of, message }] });
  }
}

function checkModels(definition: Pick<Definition, 'model'>): FieldError[] {
  const { provider, fallbacks = [] } = definition.model;
  const errors = namedModels(definition).flatMap(({ model, path }) => checkModel(model, path));
  if (provider === 'worker' && fallbacks.length > 0)
    errors.push({ path: 'model.fallbacks', message: 'must not be given for a worker: your program chooses the model' });
  return errors;
}

function checkModel(model: Model, path: string): FieldError[] {
  const { provider } = model;
  const errors: FieldError[] = [];
  const only = (field: keyof Model, providers: string) => {
    if (model[field] !== undefined)
      errors.push({ path: `${path}.${field}`, message: `is only allowed for ${providers}` });
  };
  if (provider === 'worker') {
    if (model.queue === undefined)
      errors.push({ path: `${path}.queue`, message: 'is required: the queue from which your program claims turns' });
    if (model.model !== undefined)
      errors.push({ path: `${path}.model`, message: 'must not be given for a worker: your program chooses the model' });
  } else {
    if (model.model === undefined)
      errors.push({ path: `${path}.model`, message: "is required: the provider's name of the model" });
    only('queue', 'the provider worker');
  }
  if (provider === 'worker' || provider === 'scripted') {
    only('baseUrl', 'providers that are called over the network');
    only('apiKeySecret', 'providers that are called over the network');
  } else if (model.baseUrl === undefined && ownProvider(provider) === undefined) {
    const form = cloudUrlForm(provider) ?? 'up to and including /v1';
    errors.push({ path: `${path}.baseUrl`, message: `is required for ${provider}, ${form}` });
  } else if (model.baseUrl !== undefined) {
    const message = baseUrlProblem(provider, model.baseUrl);
    if (message !== undefined) errors.push({ path: `${path}.baseUrl`, message });
  }
  if (provider !== 'scripted' && model.settings?.script)
    errors.push({ path: `${path}.settings.script`, message: 'is only allowed for the scripted model' });
  return errors;
}

function checkUrl(egress: Egress, url: string, path: string): void {
  try {
    // Placeholders are only in path and query; checkTemplate has checked that.
    egress.check(url.replaceAll(/\{\{[^}]*\}\}/g, 'x'));
  } catch (error) {
    if (!(error instanceof UrlNotAllowed)) throw error;
    const message = allowedUrlsHint(url);
    throw new ApiError('url_not_allowed', `${path}: ${message}`, { errors: [{ path, message }] });
  }
}
