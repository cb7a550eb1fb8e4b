// Tries a tool of the draft without a session: the request of an `http` tool, the list of an MCP server.
import type { HttpTool, McpTool, ToolTest } from '@signalbox/client';
import { useState } from 'react';
import { useEnvironmentNames } from '../../data/environment-names.ts';
import { useApiMutation, useOrganization } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { CodeEditor } from '../../ui/code-editor.tsx';
import { Code, Json } from '../../ui/copy.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Checkbox, Select } from '../../ui/field.tsx';
import { ErrorNotice, Notice } from '../../ui/notice.tsx';
import { PlainText } from '../../ui/text.tsx';
import { useDraft } from './draft.tsx';
import { isRecord } from './model.ts';
import { useSecretsEnvironment } from './model-lists.ts';

/** A button that opens the test. `isEffectful`: the request changes something, so the user confirms it. */
export function TestRequest({ tool, isEffectful }: { tool: Record<string, unknown>; isEffectful: boolean }) {
  const { may } = useOrganization();
  const [isOpen, setOpen] = useState(false);
  if (!may('write')) return null;
  return (
    <div>
      <Button small onClick={() => setOpen(true)}>
        Send a test request
      </Button>
      {isOpen && (
        <Dialog title={`Test ${String(tool.name || 'the tool')}`} wide onClose={() => setOpen(false)}>
          <RequestForm tool={tool as unknown as HttpTool} isEffectful={isEffectful} onClose={() => setOpen(false)} />
        </Dialog>
      )}
    </div>
  );
}

function RequestForm({ tool, isEffectful, onClose }: { tool: HttpTool; isEffectful: boolean; onClose: () => void }) {
  const names = useEnvironmentNames() ?? [];
  const usual = useSecretsEnvironment() ?? '';
  const [chosen, setChosen] = useState<string>();
  const [text, setText] = useState(() => JSON.stringify(skeletonOf(tool.inputSchema), null, 2));
  const [confirmed, setConfirmed] = useState(false);
  const environment = chosen ?? usual;
  const test = useApiMutation(
    (client, { env, input }: { env: string; input: unknown }) => client.agents.testTool(env, { tool, input }),
    [],
  );
  let input: unknown;
  let isJson = true;
  try {
    input = JSON.parse(text);
  } catch {
    isJson = false;
  }
  return (
    <div className="stack">
      <Select
        label="Environment"
        hint="Its secrets are sent to the hosts that they are for."
        value={environment}
        onChange={({ currentTarget }) => setChosen(currentTarget.value)}
        options={names.map((value) => ({ value, label: value }))}
      />
      <CodeEditor
        label="Test input"
        language="json"
        lines={4}
        value={text}
        onChange={setText}
        {...(isRecord(tool.inputSchema) && { schema: tool.inputSchema })}
      />
      {isEffectful && (
        <Checkbox
          label={`Send a real ${tool.request?.method ?? ''} request, without an approval`}
          checked={confirmed}
          onChange={({ currentTarget }) => setConfirmed(currentTarget.checked)}
        />
      )}
      {test.error && <ErrorNotice error={test.error} />}
      {test.data && !test.isPending && <TestResult test={test.data} />}
      <div className="foot">
        <Button onClick={onClose}>Close</Button>
        <Button
          look="primary"
          busy={test.isPending}
          disabled={!isJson || (isEffectful && !confirmed)}
          onClick={() => test.mutate({ env: environment, input })}
        >
          Send request
        </Button>
      </div>
    </div>
  );
}

function TestResult({ test }: { test: ToolTest }) {
  const { request, response, output, error, durationMs } = test;
  const lines = (all: readonly string[][]) => all.map(([name, value]) => `${name}: ${value}`).join('\n');
  const isFailed = error !== undefined;
  return (
    <section className="stack" aria-label="Result of the test">
      <Notice
        live
        kind={isFailed ? 'bad' : 'good'}
        title={`${response ? `HTTP ${response.status}` : 'No response'} in ${durationMs} ms`}
      >
        {isFailed && (
          <p>
            <PlainText text={error} />
          </p>
        )}
      </Notice>
      {!isFailed && (
        <>
          <h3>What the model gets</h3>
          <Json value={output} />
        </>
      )}
      {request && (
        <details>
          <summary>Request</summary>
          <Code text={`${request.method} ${request.url}\n${lines(request.headers)}\n\n${request.body ?? ''}`} wide />
        </details>
      )}
      {response && (
        <details>
          <summary>Response headers</summary>
          <Code text={lines(response.headers)} wide />
        </details>
      )}
    </section>
  );
}

/** An input to start with: each required field, empty. */
function skeletonOf(schema: unknown): Record<string, unknown> {
  if (!isRecord(schema) || !isRecord(schema.properties)) return {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  const empty: Record<string, unknown> = { string: '', integer: 0, number: 0, boolean: false, object: {}, array: [] };
  return Object.fromEntries(
    Object.entries(schema.properties)
      .filter(([name]) => required.includes(name))
      .map(([name, one]) => [name, isRecord(one) ? (empty[String(one.type)] ?? null) : null]),
  );
}

/** The tools that the server lists, to choose those that the agent offers. */
export function ServerTools({ path, server }: { path: string; server: Record<string, unknown> }) {
  const { may } = useOrganization();
  const draft = useDraft();
  const environment = useSecretsEnvironment();
  const list = useApiMutation((client, one: McpTool) => client.agents.mcpTools(environment!, { server: one }), []);
  if (!may('write') || environment === undefined) return null;
  const allowed = Array.isArray(server.allowedTools) ? server.allowedTools.map(String) : undefined;
  const found = list.data;
  const choose = (name: string, isChosen: boolean) => {
    const all = found!.tools.map((tool) => tool.name);
    const before = allowed ?? all;
    const after = isChosen ? [...before, name] : before.filter((one) => one !== name);
    draft.set(`${path}.allowedTools`, all.every((one) => after.includes(one)) ? undefined : after);
  };
  return (
    <div className="stack tight">
      <div className="row">
        <Button small busy={list.isPending} onClick={() => list.mutate(server as unknown as McpTool)}>
          List the server’s tools
        </Button>
        <span className="quiet small">With the secrets of {environment}.</span>
      </div>
      {list.error && <ErrorNotice error={list.error} />}
      {found?.problem && (
        <Notice kind="bad" live>
          <p>
            <PlainText text={found.problem} />
          </p>
        </Notice>
      )}
      {found && (found.tools.length > 0 || !found.problem) && (
        <fieldset className="server-tools">
          <legend>{found.tools.length === 1 ? '1 tool' : `${found.tools.length} tools`}; choose those to offer</legend>
          {found.tools.map(({ name, description, needsApproval }) => (
            <Checkbox
              key={name}
              label={
                <>
                  <code>
                    <PlainText text={name} />
                  </code>{' '}
                  <span className="quiet small">
                    {needsApproval ? 'needs approval' : 'no approval'} · <PlainText text={description.slice(0, 200)} />
                  </span>
                </>
              }
              checked={allowed?.includes(name) ?? true}
              onChange={({ currentTarget }) => choose(name, currentTarget.checked)}
            />
          ))}
          {found.leftOut.map(({ name, reason }) => (
            <p className="quiet small" key={name}>
              Not offered: <PlainText text={`${name} ${reason}`} />
            </p>
          ))}
        </fieldset>
      )}
    </div>
  );
}
