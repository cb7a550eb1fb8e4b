// The tools of a call as the server of its model accepts them: one pure step, which every request passes. What no server would accept is
// left out with the reason, so that one tool never stops a turn.
//
//   rules     what each server refuses
//   names     names that it accepts
//   schema    the schema of an input (modern, merge, forms, open-api)
//   inputs    the names of properties in the input of a call, in both directions
import type { JSONSchema7, LanguageModelV4FunctionTool } from '@ai-sdk/provider';
import type { SchemaObject } from '../../schemas/keywords.ts';
import type { LeftOutTool } from '../../session-rows/operation-trace.ts';
import type { TurnTool } from '../../tools/tool/tool.ts';
import type { ModelCall } from '../model/model.ts';
import { addressOf, type Target, targetOf } from '../model/targets.ts';
import { type InputNames, inputNames, namesBesideKeys, namesIn } from './inputs.ts';
import { nameFor, propertyNames } from './names.ts';
import { type ToolRules, toolRulesOf } from './rules.ts';
import { schemaFor, UnsayableSchema } from './schema.ts';

export type OfferedTool = Pick<TurnTool, 'name' | 'description' | 'inputSchema'>;

export interface SentTools {
  readonly definitions: readonly LanguageModelV4FunctionTool[];
  /** The tools' own names, in the order of the definitions. */
  readonly names: readonly string[];
  readonly leftOut: readonly LeftOutTool[];
  /** A call of the model, with the tool's own names. */
  ownCall(name: string, input: unknown): { name: string; input: unknown };
  /** A call as the model wrote it. */
  sentCall(name: string, input: unknown): { name: string; input: unknown };
  /** Whether the input of the tool is sent with other names. */
  isRenamed(name: string): boolean;
}

/** A turn has one list for all of its calls. */
const known = new WeakMap<readonly OfferedTool[], Map<Target, SentTools>>();

export function sentTools(target: Target, tools: readonly OfferedTool[]): SentTools {
  const ofList = known.get(tools) ?? new Map<Target, SentTools>();
  known.set(tools, ofList);
  const sent = ofList.get(target) ?? prepared(target, tools);
  ofList.set(target, sent);
  return sent;
}

/** The tools that a call sends. Undefined: nothing is sent to a server. */
export function sentToolsOf({ config, tools }: Pick<ModelCall, 'config' | 'tools'>): SentTools | undefined {
  const { provider } = config;
  const address = provider === 'scripted' || provider === 'worker' ? null : addressOf(config);
  return address ? sentTools(targetOf(provider, address), tools) : undefined;
}

interface SentTool {
  readonly own: string;
  readonly definition: LanguageModelV4FunctionTool;
  readonly inputs: InputNames;
}

function prepared(target: Target, tools: readonly OfferedTool[]): SentTools {
  const rules = toolRulesOf(target);
  const bySentName = new Map<string, SentTool>();
  const leftOut: LeftOutTool[] = [];
  for (const tool of tools) {
    const name = nameFor(target, tool.name);
    const inputs = inputsOf(tool.inputSchema, rules);
    const schema = ofSchema(tool.inputSchema, rules, inputs);
    const reason = bySentName.has(name)
      ? 'another tool has the same name'
      : typeof schema === 'string'
        ? schema
        : bySentName.size === rules.toolsMax
          ? `the model’s server takes ${rules.toolsMax} tools`
          : undefined;
    if (reason !== undefined) leftOut.push({ name: tool.name, reason });
    else bySentName.set(name, { own: tool.name, definition: definitionOf(name, tool, schema as Said, rules), inputs });
  }
  const all = [...bySentName.values()];
  const byOwnName = new Map(all.map((tool) => [tool.own, tool]));
  return {
    definitions: all.map(({ definition }) => definition),
    names: all.map(({ own }) => own),
    leftOut,
    ownCall(name, input) {
      const tool = bySentName.get(name);
      return tool ? { name: tool.own, input: tool.inputs.toOwn(input) } : { name, input };
    },
    sentCall(name, input) {
      const tool = byOwnName.get(name);
      return tool
        ? { name: tool.definition.name, input: tool.inputs.toSent(input) }
        : { name: nameFor(target, name), input };
    },
    isRenamed: (name) => (bySentName.get(name)?.inputs.sent.size ?? 0) > 0,
  };
}

interface Said {
  readonly schema: SchemaObject;
  readonly note: string;
}

/** Schemas of an agent are the same objects in each of its turns. */
const knownInputs = new WeakMap<SchemaObject, Map<RegExp | undefined, InputNames>>();
const knownSchemas = new WeakMap<SchemaObject, Map<ToolRules, Said | string>>();

function inputsOf(schema: SchemaObject, { propertyName }: ToolRules): InputNames {
  const found = knownInputs.get(schema) ?? new Map<RegExp | undefined, InputNames>();
  knownInputs.set(schema, found);
  const inputs = found.get(propertyName) ?? inputNames(schema, sentNamesIn(schema, propertyName));
  found.set(propertyName, inputs);
  return inputs;
}

function sentNamesIn(schema: SchemaObject, allowed: RegExp | undefined): Map<string, string> {
  const names = namesIn(schema);
  const isAllowed = allowed === undefined || [...names].every((name) => allowed.test(name));
  return isAllowed ? new Map() : propertyNames(names, namesBesideKeys(schema), allowed);
}

/** A string says why it can't be sent. */
function ofSchema(schema: SchemaObject, rules: ToolRules, { sent }: InputNames): Said | string {
  const found = knownSchemas.get(schema) ?? new Map<ToolRules, Said | string>();
  knownSchemas.set(schema, found);
  const said = found.get(rules) ?? saidOf(schema, rules, sent);
  found.set(rules, said);
  return said;
}

function saidOf(schema: SchemaObject, rules: ToolRules, names: ReadonlyMap<string, string>): Said | string {
  try {
    return schemaFor(schema, rules.schema, names);
  } catch (error) {
    if (error instanceof UnsayableSchema) return `its schema ${error.message}`;
    // The schema is a stranger's: whatever is in it must not stop the turn.
    return 'its schema can’t be written for the model’s server';
  }
}

function definitionOf(
  name: string,
  { name: own, description }: OfferedTool,
  { schema, note }: Said,
  { descriptionMaxCharacters }: ToolRules,
): LanguageModelV4FunctionTool {
  const text = description.trim() === '' ? `The tool ${own}.` : description;
  const room = descriptionMaxCharacters - (note === '' ? 0 : note.length + 2);
  const cut = text.length > room ? `${text.slice(0, room - 1).toWellFormed()}…` : text;
  return {
    type: 'function',
    name,
    description: note === '' ? cut : `${cut}\n\n${note}`,
    inputSchema: schema as JSONSchema7,
  };
}

/**
 * The tool that a field of the request is about, as the server names the field: `tools[12].function.parameters`,
 * `tools.12.custom.input_schema`, `tools[0].function_declarations[12]`.
 */
export function toolNamed(param: string, { names }: Pick<SentTools, 'names'>): string | undefined {
  const [, index] =
    /\btools(?:\[\d\]|\.\d)\.function_?declarations(?:\[|\.)(\d{1,4})\b/i.exec(param) ??
    /\btools(?:\[|\.)(\d{1,4})\b/.exec(param) ??
    [];
  return index === undefined ? undefined : names[Number(index)];
}
