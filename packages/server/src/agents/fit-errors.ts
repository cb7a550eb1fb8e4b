// What in a definition would be ignored, or could never apply, because its author mistyped a name: keywords of schemas, the rules of
// approvals, and placeholders. Nothing of this fails when the agent runs, so a call that was to be protected would not be.
//
// What an MCP server's tools take is known only when they are listed: tools/mcp/mcp-list.ts checks the rules for them. Definitions
// that earlier releases stored are not checked until their tools are sent again; `signalbox doctor` lists them.
import type { FieldError, McpTool, Tool, WebSearchTool } from '@signalbox/contract';
import type { Problem } from '../schemas/problem.ts';
import { type Fit, fitProblems, schemaProblems } from '../schemas/schemas.ts';
import { foreignPlaceholders } from '../tools/request/template.ts';
import { inputPlaceholders } from '../tools/request/template-texts.ts';
import { approvalOf, turnToolOf } from '../tools/tool/turn-tool.ts';
import { approvalsOf } from './definition.ts';

/** Also what is wrong with the schemas themselves. */
export async function fitErrors(
  organizationId: string,
  tools: readonly Tool[],
  outputSchema: Record<string, unknown> | null,
): Promise<FieldError[]> {
  const parts = tools.map((tool, index) => ({
    tool,
    path: `tools[${index}]`,
    rules: rulesOf(tool, `tools[${index}]`),
  }));
  const schemas = parts.flatMap(({ tool, path, rules }) => [
    ...('inputSchema' in tool
      ? [{ path: `${path}.inputSchema`, schema: tool.inputSchema, strictness: 'own' as const }]
      : []),
    ...rules.map((rule) => ({ ...rule, strictness: 'rule' as const })),
  ]);
  if (outputSchema) schemas.push({ path: 'outputSchema', schema: outputSchema, strictness: 'own' });
  const broken = (await schemaProblems(organizationId, schemas)).flatMap((problems, index) =>
    problems.map((problem) => errorAt(schemas[index]!.path, problem)),
  );
  if (broken.length > 0) return broken;

  const foreign = tools.flatMap((tool, index) =>
    tool.type === 'http'
      ? foreignPlaceholders(tool.request).map((one) => ({ ...one, path: `tools[${index}].request.${one.path}` }))
      : [],
  );
  const fits = parts.flatMap(({ tool, path, rules }) =>
    tool.type === 'mcp' || tool.type === 'web_search' ? [] : fitsOf(tool, path, rules),
  );
  const found = await fitProblems(
    organizationId,
    fits.map(({ fit }) => fit),
  );
  return [...foreign, ...found.flatMap((problems, index) => problems.map(fits[index]!.errorOf))];
}

interface Part {
  path: string;
  schema: Record<string, unknown>;
}

/** What must fit the schema of a tool's input, and the error for what does not. */
function fitsOf(
  tool: Exclude<Tool, McpTool | WebSearchTool>,
  path: string,
  rules: readonly Part[],
): { fit: Fit; errorOf: (problem: Problem) => FieldError }[] {
  const { inputSchema } = turnToolOf(tool);
  const fits = rules.map((rule) => ({
    fit: { inputSchema, rule: rule.schema, isForeign: false },
    errorOf: (problem: Problem) => errorAt(rule.path, problem),
  }));
  if (tool.type !== 'http') return fits;
  const places = inputPlaceholders(tool.request);
  const errorOf = ({ path: name, message }: Problem) => ({
    path: `${path}.request.${places.get(name)}`,
    message: `has {{input.${name}}}, which ${message}`,
  });
  return [...fits, { fit: { inputSchema, paths: [...places.keys()] }, errorOf }];
}

function errorAt(path: string, problem: Problem): FieldError {
  return { path: problem.path === '' ? path : `${path}.${problem.path}`, message: problem.message };
}

/** The rules of a tool's approvals, with their paths. */
function rulesOf(tool: Tool, path: string): Part[] {
  return approvalsOf(tool).flatMap(({ path: inner, approval }) => {
    const { approval: policy, by } = approvalOf(approval);
    const at = by ? `${path}.${inner}.policy` : `${path}.${inner}`;
    return typeof policy === 'object' ? [{ path: `${at}.when`, schema: policy.when }] : [];
  });
}
