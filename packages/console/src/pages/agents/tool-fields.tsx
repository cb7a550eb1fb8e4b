// The fields of a tool, by its type.

import { useAgents } from '../../data/agent-names.ts';
import { schemaOfInputs } from '../../ui/editor/schema-of-schemas.ts';
import { Checkbox } from '../../ui/field.tsx';
import { ApprovalField } from './approval-field.tsx';
import { useDraft } from './draft.tsx';
import { DraftJson, DraftNumber, DraftSelect, DraftText, textOf } from './fields.tsx';
import { SchemaFromExample } from './schema-from-example.tsx';
import { ServerTools, TestRequest } from './try-tool.tsx';

export const toolTypes = ['http', 'mcp', 'client', 'agent', 'web_search'] as const;
export type ToolType = (typeof toolTypes)[number];

export const toolTypeText: Record<ToolType, { label: string; about: string }> = {
  http: { label: 'HTTP request', about: 'Signalbox sends an HTTP request from a template.' },
  mcp: { label: 'MCP server', about: 'Tools of a Model Context Protocol server: all or some.' },
  client: { label: 'Client tool', about: 'Your program runs it and posts the result.' },
  agent: { label: 'Agent', about: 'Each call runs a session of another agent.' },
  web_search: {
    label: 'Web search',
    about: 'The own search of OpenAI, Azure, Anthropic, Google or Vertex AI, which runs it.',
  },
};

const inputSchema = { type: 'object', properties: {}, required: [] };

/** The initial fields of a new tool. */
export const newTools: Record<ToolType, Record<string, unknown>> = {
  http: {
    type: 'http',
    name: '',
    description: '',
    inputSchema,
    request: { method: 'GET', url: 'https://' },
  },
  mcp: { type: 'mcp', name: '', url: 'https://' },
  client: { type: 'client', name: '', description: '', inputSchema },
  agent: { type: 'agent', name: '', description: '', agentId: '' },
  web_search: { type: 'web_search' },
};

/** When calls need approval if the tool does not say. */
function defaultApproval(tool: Record<string, unknown>): string {
  if (tool.type === 'mcp') return 'always, except for tools that the server marks as read-only';
  return isEffectful(tool) ? 'always, because the tool has an effect' : 'never';
}

/** Whether the service treats a call of an `http` or `client` tool as one with an effect. */
export function isEffectful(tool: Record<string, unknown>): boolean {
  if (typeof tool.effectful === 'boolean') return tool.effectful;
  const { method } = (tool.request ?? {}) as { method?: unknown };
  return tool.type === 'http' && method !== undefined && method !== 'GET';
}

export function ToolFields({ path, tool }: { path: string; tool: Record<string, unknown> }) {
  switch (tool.type) {
    case 'http':
      return <HttpFields path={path} tool={tool} />;
    case 'mcp':
      return <McpFields path={path} tool={tool} />;
    case 'client':
      return <ClientFields path={path} tool={tool} />;
    case 'agent':
      return <AgentFields path={path} tool={tool} />;
    case 'web_search':
      return <SearchFields path={path} tool={tool} />;
    default:
      return <DraftJson path={path} label="Tool" hint="This form doesn’t support this type of tool. Edit its JSON." />;
  }
}

interface Fields {
  path: string;
  tool: Record<string, unknown>;
}

function NameAndDescription({ path }: { path: string }) {
  return (
    <>
      <DraftText
        path={`${path}.name`}
        label="Name"
        mono
        hint="The name that the model uses: letters, digits, _ and -."
      />
      <DraftText
        path={`${path}.description`}
        label="Description"
        lines={2}
        hint="Tells the model what the tool does and when to use it."
      />
    </>
  );
}

function InputSchema({ path }: { path: string }) {
  return (
    <>
      <DraftJson
        path={`${path}.inputSchema`}
        label="Input schema"
        lines={6}
        schema={schemaOfInputs}
        hint="A JSON Schema of an object. A call whose input doesn’t match it doesn’t run."
      />
      <SchemaFromExample path={`${path}.inputSchema`} label="input schema" />
    </>
  );
}

function Effectful({ path, tool }: Fields) {
  const draft = useDraft();
  return (
    <Checkbox
      label="Has an effect: a call changes something outside"
      checked={isEffectful(tool)}
      onChange={({ currentTarget }) => draft.set(`${path}.effectful`, currentTarget.checked)}
    />
  );
}

function HttpFields({ path, tool }: Fields) {
  const draft = useDraft();
  return (
    <>
      <NameAndDescription path={path} />
      <InputSchema path={path} />
      <div className="method-and-url">
        <DraftSelect
          path={`${path}.request.method`}
          label="Method"
          options={['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((value) => ({ value, label: value }))}
        />
        <DraftText path={`${path}.request.url`} label="URL" mono />
      </div>
      <p className="hint">
        <code>{'{{input.orderId}}'}</code> inserts a value of the input, <code>{'{{secrets.SHOP_TOKEN}}'}</code> a
        secret of the environment. Use them in the path, query, headers and body, but not in the host.
      </p>
      <DraftJson
        path={`${path}.request.headers`}
        label="Headers"
        lines={3}
        hint={
          <>
            JSON, such as <code>{'{ "Authorization": "Bearer {{secrets.SHOP_TOKEN}}" }'}</code>. Optional.
          </>
        }
      />
      <DraftJson path={`${path}.request.body`} label="Body" lines={3} hint="JSON. Optional." />
      <Effectful path={path} tool={tool} />
      <Checkbox
        label="Idempotent: a call may be repeated after a crash"
        checked={tool.idempotent === true}
        onChange={({ currentTarget }) => draft.set(`${path}.idempotent`, currentTarget.checked || undefined)}
      />
      <ApprovalField path={`${path}.approval`} byDefault={defaultApproval(tool)} />
      <Timeout path={path} />
      <TestRequest tool={tool} isEffectful={isEffectful(tool)} />
    </>
  );
}

function McpFields({ path, tool }: Fields) {
  const draft = useDraft();
  const allowed = tool.allowedTools;
  return (
    <>
      <DraftText
        path={`${path}.name`}
        label="Name"
        mono
        hint="The prefix of the server’s tool names. With crm, find_customer becomes crm__find_customer."
      />
      <DraftText path={`${path}.url`} label="URL" mono />
      <DraftJson
        path={`${path}.headers`}
        label="Headers"
        lines={3}
        hint={
          <>
            JSON, such as <code>{'{ "Authorization": "Bearer {{secrets.CRM_TOKEN}}" }'}</code>. Optional.
          </>
        }
      />
      <ServerTools path={path} server={tool} />
      <Checkbox
        label="Offer only some of the server’s tools"
        checked={allowed !== undefined}
        onChange={({ currentTarget }) => draft.set(`${path}.allowedTools`, currentTarget.checked ? [] : undefined)}
      />
      {allowed !== undefined && (
        <DraftJson
          path={`${path}.allowedTools`}
          label="Tools to offer"
          lines={3}
          hint={
            <>
              JSON list of the server’s own tool names: <code>["find_customer"]</code>.
            </>
          }
        />
      )}
      <ApprovalField path={`${path}.approval`} byDefault={defaultApproval(tool)} perTool />
      <Timeout path={path} />
    </>
  );
}

function ClientFields({ path, tool }: Fields) {
  return (
    <>
      <NameAndDescription path={path} />
      <InputSchema path={path} />
      <Effectful path={path} tool={tool} />
      <ApprovalField path={`${path}.approval`} byDefault={defaultApproval(tool)} />
    </>
  );
}

function AgentFields({ path, tool }: Fields) {
  const agents = useAgents().data ?? [];
  const chosen = textOf(tool.agentId);
  const options = agents
    .filter(({ agentId, archivedAt }) => archivedAt === null || agentId === chosen)
    .map(({ agentId, name }) => ({ value: agentId, label: name }));
  return (
    <>
      <NameAndDescription path={path} />
      <DraftSelect
        path={`${path}.agentId`}
        label="Agent"
        options={chosen === '' ? [{ value: '', label: 'Choose' }, ...options] : options}
        hint="Its sessions are children of the calling session and share its budget."
      />
      <ApprovalField path={`${path}.approval`} byDefault="never. That agent requests its own approvals" />
    </>
  );
}

function SearchFields({ path, tool }: Fields) {
  const draft = useDraft();
  const domains = tool.allowedDomains;
  return (
    <>
      <p className="hint">
        The model’s provider searches while the model responds: there is no approval. The searches, and what the answer
        cites, are shown in the conversation. Providers charge for searches, which is not in the cost shown here.
      </p>
      <Checkbox
        label="Search only some domains"
        data-path={`${path}.allowedDomains`}
        checked={domains !== undefined}
        onChange={({ currentTarget }) => draft.set(`${path}.allowedDomains`, currentTarget.checked ? [] : undefined)}
      />
      {domains !== undefined && (
        <DraftJson
          path={`${path}.allowedDomains`}
          label="Domains"
          lines={3}
          hint={
            <>
              JSON list of domains, which include their subdomains: <code>["example.com"]</code>. Not for Google.
            </>
          }
        />
      )}
      <DraftNumber
        path={`${path}.maxUses`}
        label="Most searches of a model call"
        hint="1 to 100. Empty: no limit. Not for Google."
      />
    </>
  );
}

function Timeout({ path }: { path: string }) {
  return <DraftNumber path={`${path}.timeoutSeconds`} label="Timeout (seconds)" hint="1 to 300. Default: 30." />;
}
