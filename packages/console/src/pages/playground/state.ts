// What is open in the playground. The browser keeps it, so that a reload or a closed page loses nothing: sessions run on the service,
// and each column has the id of its own.
import type { Draft } from '@signalbox/client';
import type { Definition } from '../agents/definition.ts';
import { isRecord } from '../agents/model.ts';

/** What a call of a mocked tool gets. Text that is not JSON is sent as text. */
export interface MockedResult {
  kind: 'output' | 'error';
  text: string;
}

export interface ToolChoice {
  use: 'run' | 'mock' | 'off';
  results: readonly MockedResult[];
  keepsApproval: boolean;
}

/** A session of a column, and how many messages of the playground it has. */
export interface Run {
  sessionId: string;
  messages: number;
  /** The draft that it runs, as text, to tell whether the column has changed since. */
  draft: string;
}

export interface Column {
  id: string;
  /** The version that it was loaded from; null for a new agent. */
  source: { agentId: string; version: number; name: string } | null;
  definition: Definition;
  /** The definition differs from what was loaded or saved. */
  isEdited?: boolean;
  /** By the name of a tool; those that are missing run. */
  tools: Readonly<Record<string, ToolChoice>>;
  run: Run | null;
}

export interface Message {
  text: string;
  files: readonly { fileId: string; filename: string }[];
}

export interface Playground {
  columns: readonly Column[];
  messages: readonly Message[];
  environment: string | null;
  /** The turn of a session that is repeated: each run begins with the conversation before it. `step`: what the link named. */
  origin: { sessionId: string; turn: number; step?: number } | null;
  isSetupHidden: boolean;
}

export const MAX_COLUMNS = 3;
export const letterOf = (index: number): string => 'ABC'[index]!;
export const emptyMessage: Message = { text: '', files: [] };
const toolDefault: ToolChoice = { use: 'run', results: [{ kind: 'output', text: '' }], keepsApproval: false };

const keyOf = (organizationId: string) => `signalbox.playground.${organizationId}`;

/** Undefined if nothing was open, or what was is not readable any more. */
export function remembered(organizationId: string): Playground | undefined {
  try {
    const value = JSON.parse(localStorage.getItem(keyOf(organizationId)) ?? 'null') as unknown;
    return isPlayground(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** False if the browser has no room for it. */
export function remember(organizationId: string, playground: Playground | undefined): boolean {
  try {
    if (playground) localStorage.setItem(keyOf(organizationId), JSON.stringify(playground));
    else localStorage.removeItem(keyOf(organizationId));
    return true;
  } catch {
    return false;
  }
}

function isPlayground(value: unknown): value is Playground {
  if (!isRecord(value) || !Array.isArray(value.columns) || !Array.isArray(value.messages)) return false;
  return value.columns.length > 0 && value.columns.every((one) => isRecord(one) && isRecord(one.definition));
}

export function newColumn(definition: Definition, more: Partial<Column> = {}): Column {
  return { id: crypto.randomUUID(), source: null, definition, tools: {}, run: null, ...more };
}

export function toolsOf(definition: Definition): readonly Record<string, unknown>[] {
  return Array.isArray(definition.tools) ? definition.tools.filter(isRecord) : [];
}

export function nameOf({ type, name }: Record<string, unknown>): string {
  return type === 'web_search' ? type : String(name);
}

/** The tools of the definition, and those of its MCP servers that are mocked by themselves. */
export function toolNames({ definition, tools }: Pick<Column, 'definition' | 'tools'>): string[] {
  const own = toolsOf(definition).map(nameOf);
  return [...own, ...Object.keys(tools).filter((name) => !own.includes(name) && isToolOf(definition, name))];
}

function isToolOf(definition: Definition, tool: string): boolean {
  return toolsOf(definition).some(
    (one) => nameOf(one) === tool || (one.type === 'mcp' && tool.startsWith(`${one.name}__`)),
  );
}

export function choiceOf(column: Column, tool: string): ToolChoice {
  return column.tools[tool] ?? toolDefault;
}

/** The definition without the tools that are off: what runs, and what is saved. */
export function ranDefinition({ definition, tools }: Pick<Column, 'definition' | 'tools'>): Definition {
  const all = toolsOf(definition);
  const isOn = (tool: Record<string, unknown>) => tools[nameOf(tool)]?.use !== 'off';
  return all.every(isOn) ? definition : { ...definition, tools: all.filter(isOn) };
}

export function draftOf(column: Column): Draft {
  const definition = ranDefinition(column);
  const mocks = toolNames(column).flatMap((name) => {
    const { use, results, keepsApproval } = choiceOf(column, name);
    if (use !== 'mock' || !isToolOf(definition, name)) return [];
    const approval = keepsApproval ? ('keep' as const) : ('skip' as const);
    return [[name, { results: results.map(resultOf), approval }] as const];
  });
  return { definition: definition as unknown as Draft['definition'], mocks: Object.fromEntries(mocks) };
}

function resultOf({ kind, text }: MockedResult): { output: unknown } | { error: string } {
  if (kind === 'error') return { error: text.trim() || 'The call failed.' };
  try {
    return { output: JSON.parse(text) as unknown };
  } catch {
    return { output: text };
  }
}

/** Choices for a draft that came from the service. */
export function choicesOf(mocks: Draft['mocks'] = {}): Column['tools'] {
  return Object.fromEntries(
    Object.entries(mocks).map(([name, { results, approval }]): [string, ToolChoice] => [
      name,
      {
        use: 'mock',
        results: results.map(({ output, error }) =>
          error === undefined
            ? { kind: 'output', text: JSON.stringify(output, null, 2) ?? '' }
            : { kind: 'error', text: error },
        ),
        keepsApproval: approval === 'keep',
      },
    ]),
  );
}

/** The turn that the first message of the playground is. */
export function firstTurnOf({ origin }: Playground): number {
  return origin?.turn ?? 1;
}
