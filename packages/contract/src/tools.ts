/** The tools of an agent, and which of their calls need an approval. */

import { Approvers } from './approvals.ts';
import { Id, JsonSchema, OneOf, type Static, Strict, Tagged, Type } from './schema.ts';

const ToolName = Type.String({
  pattern: '^[A-Za-z][A-Za-z0-9_-]{0,63}$',
  'x-expected': '1 to 64 letters, digits, "_" and "-", the first a letter',
  description: 'The name by which the model calls the tool; unique in the agent.',
  examples: ['refund_order'],
});
const Description = Type.String({ maxLength: 4_000 });
const Effectful = Type.Boolean({
  description:
    'Whether a call has an effect outside of the service. Default: true for `http` tools whose method is not GET, otherwise false.',
});
/** Whether a call of a tool needs an approval before it runs. */
export const ApprovalPolicy = Type.Unsafe<'always' | 'never' | 'once' | { when: Record<string, unknown> }>({
  title: 'ApprovalPolicy',
  description:
    '`always`, `never`, `once` (once per session and tool), or `{ "when": <JSON Schema> }`: if the input matches. What `when` names must be in the schema of the input. Default: `always` for effectful tools, `never` for others.',
  anyOf: [OneOf(['always', 'never', 'once']), Strict({ when: JsonSchema }, { title: 'ApprovalWhen' })],
});
export type ApprovalPolicy = Static<typeof ApprovalPolicy>;

const expectedWhen = '{ "when": <JSON Schema> }';
const expectedApproval = `"always", "never", "once", ${expectedWhen} or { "policy": …, "by": … }`;

/** A policy, with the approvers that may decide. */
export const ApprovalRule = Strict(
  {
    policy: Type.Unsafe<Exclude<ApprovalPolicy, 'never'>>({
      description: 'Which calls need an approval.',
      'x-expected': `"always", "once" or ${expectedWhen}`,
      anyOf: [OneOf(['always', 'once']), Strict({ when: JsonSchema }, { title: 'ApprovalWhen' })],
    }),
    by: Approvers,
  },
  { title: 'ApprovalRule' },
);
export type ApprovalRule = Static<typeof ApprovalRule>;

/** Whether a call of a tool needs an approval, and from whom. */
export const ToolApproval = Type.Unsafe<ApprovalPolicy | ApprovalRule>({
  title: 'ToolApproval',
  description: 'Which calls need an approval; with `{ "policy", "by" }` also who may decide it.',
  'x-expected': expectedApproval,
  anyOf: [ApprovalPolicy, ApprovalRule],
});
export type ToolApproval = Static<typeof ToolApproval>;

const label = '[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?';
/** A name with a dot: a top-level domain alone would allow every site in it. */
const Domain = Type.String({
  pattern: `^(${label}\\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`,
  maxLength: 253,
  'x-expected':
    'a domain in lower case such as "example.com", which includes its subdomains: no "https://", "*", port or path',
  examples: ['example.com'],
});

const Headers = Type.Unsafe<Record<string, string>>({
  type: 'object',
  maxProperties: 50,
  propertyNames: { pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$", 'x-expected': 'the name of a header' },
  additionalProperties: { type: 'string', maxLength: 8_192 },
});

export const HttpRequest = Strict(
  {
    method: OneOf(['GET', 'POST', 'PUT', 'PATCH', 'DELETE']),
    url: Type.String({
      maxLength: 2048,
      description:
        '`{{input.x}}`, `{{secrets.NAME}}`, `{{session.endUser.id}}` and `{{session.endUser.name}}` are allowed in path and query, but not in scheme, host or port.',
    }),
    headers: Type.Optional(Headers),
    body: Type.Optional(
      Type.Unsafe<unknown>({
        description:
          'JSON. A string that consists only of `"{{input.n}}"` is replaced by the value with its JSON type.',
      }),
    ),
  },
  { title: 'HttpRequest' },
);
export type HttpRequest = Static<typeof HttpRequest>;

export const HttpTool = Strict(
  {
    type: Type.Literal('http'),
    name: ToolName,
    description: Description,
    inputSchema: JsonSchema,
    request: HttpRequest,
    effectful: Type.Optional(Effectful),
    approval: Type.Optional(ToolApproval),
    idempotent: Type.Optional(
      Type.Boolean({ description: 'Whether a call can be repeated after a crash. Default: false.' }),
    ),
    timeoutSeconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 300, default: 30 })),
  },
  { title: 'HttpTool' },
);
export type HttpTool = Static<typeof HttpTool>;

export const ClientTool = Strict(
  {
    type: Type.Literal('client'),
    name: ToolName,
    description: Description,
    inputSchema: JsonSchema,
    effectful: Type.Optional(Effectful),
    approval: Type.Optional(ToolApproval),
  },
  { title: 'ClientTool' },
);
export type ClientTool = Static<typeof ClientTool>;

/** The tools of a Model Context Protocol server over streamable HTTP; they appear as `<name>__<tool>`. */
export const McpTool = Strict(
  {
    type: Type.Literal('mcp'),
    name: Type.String({
      pattern: '^[A-Za-z][A-Za-z0-9_-]{0,31}$',
      'x-expected': '1 to 32 letters, digits, "_" and "-", the first a letter',
      description: "Prefix of the names of the server's tools; unique in the agent.",
    }),
    url: Type.String({ maxLength: 2048, description: 'URL of the server.' }),
    headers: Type.Optional(
      Type.Unsafe<Record<string, string>>({
        ...Headers,
        description:
          'Sent with every request; can contain `{{secrets.NAME}}`, `{{session.endUser.id}}` and `{{session.endUser.name}}`.',
      }),
    ),
    allowedTools: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
        maxItems: 200,
        description:
          "The tools to offer, by the server's own names. Default: all. Names that are not tools of the server are ignored.",
      }),
    ),
    approval: Type.Optional(
      Type.Unsafe<ToolApproval | Record<string, ToolApproval>>({
        description:
          "One policy for all tools, or one for each of the server's tools by its own name. Default: `never` for tools that the server marks as read-only, otherwise `always`. If a name has another policy than `never` and is not a tool of the server, none of the server's tools are offered.",
        'x-expected': `${expectedApproval}, or an object with one of these for each tool`,
        anyOf: [
          ToolApproval,
          {
            type: 'object',
            maxProperties: 200,
            propertyNames: { minLength: 1, maxLength: 200 },
            additionalProperties: ToolApproval,
          },
        ],
      }),
    ),
    timeoutSeconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 300, default: 30 })),
  },
  { title: 'McpTool' },
);
export type McpTool = Static<typeof McpTool>;

/** Another agent, in its own session (a child, with `parentSessionId`) that shares this one's budget. */
export const AgentTool = Strict(
  {
    type: Type.Literal('agent'),
    name: ToolName,
    description: Description,
    agentId: Id('agt'),
    approval: Type.Optional(
      Type.Unsafe<ToolApproval>({
        ...ToolApproval,
        description: 'Default: `never`; the child session requests approvals itself.',
      }),
    ),
  },
  { title: 'AgentTool' },
);
export type AgentTool = Static<typeof AgentTool>;

/** The own web search of the model's provider, which runs it: `openai`, `azure`, `anthropic`, `google` or `vertex`. Its name is `web_search`. */
export const WebSearchTool = Strict(
  {
    type: Type.Literal('web_search'),
    allowedDomains: Type.Optional(
      Type.Array(Domain, {
        minItems: 1,
        maxItems: 100,
        description: 'Search only these domains and their subdomains. Not for `google` and `vertex`.',
      }),
    ),
    maxUses: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100,
        description:
          'How many times one model call can search; a turn can have several. Not for `google` and `vertex`.',
      }),
    ),
  },
  { title: 'WebSearchTool' },
);
export type WebSearchTool = Static<typeof WebSearchTool>;

export const Tool = Tagged([HttpTool, McpTool, ClientTool, AgentTool, WebSearchTool], { title: 'Tool' });
export type Tool = Static<typeof Tool>;

/** The name of the provider's own search, which no other tool of the agent can have. */
export const webSearchName = 'web_search';

export function toolNameOf(tool: Tool): string {
  return tool.type === 'web_search' ? webSearchName : tool.name;
}
