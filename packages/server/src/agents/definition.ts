// Whether a definition is whole: what the schemas of the contract cannot say.
import type { FieldError, Tool } from '@signalbox/contract';
import Schema from 'typebox/schema';
import type { Egress } from '../egress/egress.ts';
import { UrlNotAllowed } from '../egress/errors.ts';
import { ApiError } from '../lib/api-error.ts';
import { bounded } from '../lib/bounded.ts';
import { checkTemplate } from '../runtime/tools/template.ts';
import type { Definition } from './agents.ts';

/** Throws 400 with every field that is wrong, or 422 `url_not_allowed`. */
export function checkDefinition(definition: Definition, egress: Egress): void {
  const errors: FieldError[] = [...checkModel(definition)];
  const names = new Set<string>();
  for (const [index, tool] of definition.tools.entries()) {
    const path = `tools[${index}]`;
    if (names.has(tool.name))
      errors.push({ path: `${path}.name`, message: `"${tool.name}" is another tool's name already` });
    names.add(tool.name);
    const schema = checkSchema(tool.inputSchema);
    if (schema) errors.push({ path: `${path}.inputSchema`, message: schema });
    if (tool.type === 'http') {
      for (const { path: inner, message } of checkTemplate(tool.request)) {
        errors.push({ path: `${path}.request.${inner}`, message });
      }
    }
  }
  const [first] = errors;
  if (first) throw new ApiError('invalid_request', `${first.path}: ${first.message}`, { errors });

  if (definition.model.baseUrl !== undefined) checkUrl(egress, definition.model.baseUrl, 'model.baseUrl');
  for (const [index, tool] of definition.tools.entries()) {
    if (tool.type === 'http') checkUrl(egress, tool.request.url, `tools[${index}].request.url`);
  }
}

/** Whether a call of the tool changes something outside. */
function isEffectful(tool: Tool): boolean {
  return tool.effectful ?? (tool.type === 'http' && tool.request.method !== 'GET');
}

/** Whether a person decides before a call of the tool runs. */
export function needsApproval(tool: Tool): boolean {
  return (tool.approval ?? (isEffectful(tool) ? 'always' : 'never')) === 'always';
}

/** Whether a call that was cut off may be made again. */
export function mayRepeat(tool: Tool): boolean {
  return !isEffectful(tool) || (tool.type === 'http' && tool.idempotent === true);
}

function checkModel({ model }: Definition): FieldError[] {
  switch (model.provider) {
    case 'scripted':
      return model.baseUrl === undefined
        ? []
        : [{ path: 'model.baseUrl', message: 'is not for the scripted model, which needs no network' }];
    case 'openai-compatible': {
      const errors: FieldError[] = [];
      if (model.baseUrl === undefined) {
        errors.push({ path: 'model.baseUrl', message: 'is needed for openai-compatible, up to and with /v1' });
      } else if (!URL.canParse(model.baseUrl)) {
        errors.push({ path: 'model.baseUrl', message: 'must be a URL' });
      }
      if (model.settings?.script)
        errors.push({ path: 'model.settings.script', message: 'is for the scripted model alone' });
      return errors;
    }
  }
}

function checkSchema(schema: Record<string, unknown>): string | undefined {
  if (schema.type !== undefined && schema.type !== 'object')
    return 'must be the schema of an object ("type": "object")';
  try {
    for (const pattern of patternsOf(schema)) new RegExp(pattern, 'u');
    // Finds what cannot be evaluated at all, such as references to nowhere, to themselves or doubling at every level.
    bounded(() => Schema.Check(schema, {}));
  } catch {
    return 'cannot be evaluated as a JSON Schema';
  }
  return undefined;
}

/** Every regular expression in a schema; what stands in data (`const`, `enum` …) is none. */
function* patternsOf(schema: unknown): Generator<string> {
  if (typeof schema !== 'object' || schema === null) return;
  for (const [keyword, value] of Object.entries(schema)) {
    if (['const', 'enum', 'default', 'examples'].includes(keyword)) continue;
    if (keyword === 'pattern' && typeof value === 'string') yield value;
    else if (keyword === 'patternProperties' && typeof value === 'object') yield* Object.keys(value ?? {});
    yield* patternsOf(value);
  }
}

function checkUrl(egress: Egress, url: string, path: string): void {
  try {
    // What stands in braces is in path and query alone, as checkTemplate has seen.
    egress.check(url.replaceAll(/\{\{[^}]*\}\}/g, 'x'));
  } catch (error) {
    if (!(error instanceof UrlNotAllowed)) throw error;
    throw new ApiError('url_not_allowed', `${path}: ${error.message}`, { errors: [{ path, message: error.message }] });
  }
}
