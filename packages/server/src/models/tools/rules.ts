// What the servers of models refuse in the definitions of tools. A server that is not known gets the form that all of them accept.
import type { Target } from '../model/targets.ts';

export interface ToolRules {
  /** The names of tools that are sent as they are. */
  readonly name: RegExp;
  /** Names that match, but that something else has. */
  readonly reserved?: readonly string[];
  /** How many tools a request may have. */
  readonly toolsMax: number;
  /** The limit of a tool's description. */
  readonly descriptionMaxCharacters: number;
  /** The names of properties that are sent as they are. Undefined: all. */
  readonly propertyName?: RegExp;
  readonly schema: SchemaRules;
}

/**
 * Everywhere: the root is of an object and has no alternatives; arrays have `items`; the dialect is draft 2020-12.
 */
export interface SchemaRules {
  /**
   * Whether parts may refer to others, and be combined in any way. If not, a part that has alternatives (`anyOf`) says nothing else.
   */
  readonly combines: boolean;
  /** Whether every part needs a type. */
  readonly needsTypes: boolean;
  /** How the items of a list that have a schema each are said. */
  readonly tuples: 'prefixItems' | 'anyOf';
  /** Only the keywords of OpenAPI 3.0: null is not a type, and only texts can be listed. */
  readonly isOpenApi: boolean;
}

const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const NAME_WITH_LETTER = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
const NO_LIMIT = Number.POSITIVE_INFINITY;

const plain: SchemaRules = { combines: false, needsTypes: false, tuples: 'anyOf', isOpenApi: false };
const typed: SchemaRules = { ...plain, needsTypes: true };

const openai: ToolRules = {
  name: NAME,
  toolsMax: 128,
  descriptionMaxCharacters: 1024,
  schema: { ...plain, combines: true },
};

const chat: ToolRules = {
  name: NAME_WITH_LETTER,
  toolsMax: 128,
  descriptionMaxCharacters: 1024,
  propertyName: /^[A-Za-z0-9_.-]{1,64}$/,
  schema: typed,
};

const google: ToolRules = {
  ...chat,
  toolsMax: NO_LIMIT,
  descriptionMaxCharacters: NO_LIMIT,
  schema: plain,
  propertyName: /^[A-Za-z_][A-Za-z0-9_]{0,63}$/,
};

const rules: Readonly<Record<Target, ToolRules>> = {
  openai,
  anthropic: {
    ...chat,
    name: NAME,
    // The SDK's own, by which a model without structured outputs responds.
    reserved: ['json'],
    toolsMax: NO_LIMIT,
    descriptionMaxCharacters: NO_LIMIT,
    schema: { ...plain, combines: true, tuples: 'prefixItems' },
  },
  google,
  // Models of many makers. The package has a tool of its own, by which a model responds with JSON.
  bedrock: { ...chat, name: NAME, reserved: ['json'], toolsMax: NO_LIMIT, descriptionMaxCharacters: NO_LIMIT },
  chat,
  'openai-chat': openai,
  azure: openai,
  'google-chat': { ...google, toolsMax: 128, schema: { ...typed, isOpenApi: true } },
  // It passes requests on to all of the others.
  openrouter: { ...chat, propertyName: google.propertyName! },
  deepseek: { ...chat, name: NAME },
  moonshot: chat,
  mistral: { ...chat, name: NAME, descriptionMaxCharacters: NO_LIMIT },
  groq: { ...chat, name: NAME },
  xai: { ...chat, name: NAME, toolsMax: 200 },
};

export function toolRulesOf(target: Target): ToolRules {
  return rules[target];
}
