// The tool calls of a turn: how a call is created, and what the model gets as its result.
import type { MessagePart, Source } from '@signalbox/contract';
import { grantFor } from '../approvals/approvers.ts';
import { newUuid } from '../lib/ids.ts';
import { JsonText, shortOrText } from '../lib/json/json-text.ts';
import { isSameJson } from '../lib/json/same-json.ts';
import { storableJson, storableText } from '../lib/text.ts';
import { inputErrors, mayMatch } from '../schemas/schemas.ts';
import { leftOutToolText } from '../session-rows/left-out.ts';
import { mockMark, type Operation, type OperationStatus, toolCallIdOf } from '../session-rows/operations.ts';
import type { Ran, RanCall } from '../session-rows/ran.ts';
import type { RunsAs, ToolOutcome, TurnTool } from '../tools/tool/tool.ts';
import { LEFT_OUT, truncateToFit } from './transcript-size.ts';

/** The status of a call that has started, by what runs it. */
export const STARTED = {
  here: 'running',
  client: 'awaiting_result',
  session: 'awaiting_session',
} as const satisfies Record<RunsAs, OperationStatus>;

/** What decides about a call that the model requests. */
export interface CallRules {
  readonly organizationId: string;
  readonly turn: number;
  readonly tools: readonly TurnTool[];
  /** Tools that approvers have granted for the rest of this session (`grantFor`). */
  readonly grantedTools: readonly string[];
  /** The note to the model about MCP servers that are unavailable. */
  readonly unavailable: readonly string[];
}

/** As the model requests it. `operationId`: if its input has been shown, under which id. */
export interface AskedCall {
  name: string;
  input: unknown;
  operationId?: string;
}

/**
 * The calls of a step as they are stored: waiting for an approval, ready, or failed because the tool does not exist or the input
 * does not match its schema. All schemas are evaluated together, within the time limit of one evaluation.
 */
export async function newCalls(rules: CallRules, step: number, asked: readonly AskedCall[]): Promise<Operation[]> {
  const calls = asked.map((call, index) => newCall(rules, step, index + 1, call));
  const ready = () =>
    calls.filter(({ status }) => status === 'ready').map((call) => [call, toolOf(rules.tools, call)!] as const);

  const given = ready();
  const inputs = given.map(([{ input }, { inputSchema }]) => ({ schema: inputSchema, value: input }));
  const wrong = await inputErrors(rules.organizationId, inputs);
  for (const [index, [call]] of given.entries()) {
    if (wrong[index] === undefined) continue;
    Object.assign(call, { status: 'failed', error: `The input does not match the tool's schema: ${wrong[index]}` });
  }

  const conditional: { call: Operation; schema: Record<string, unknown> }[] = [];
  for (const [call, { name, approval, by }] of ready()) {
    if (approval === 'never' || rules.grantedTools.includes(grantFor(name, by))) continue;
    if (typeof approval === 'object') conditional.push({ call, schema: approval.when });
    else call.status = 'awaiting_approval';
  }
  const evaluations = conditional.map(({ call, schema }) => ({ schema, value: call.input }));
  const matches = await mayMatch(rules.organizationId, evaluations);
  for (const [index, { call }] of conditional.entries()) if (matches[index]) call.status = 'awaiting_approval';
  return calls;
}

/** Ready, or failed because the tool does not exist. */
function newCall(rules: CallRules, step: number, index: number, { name, input, operationId }: AskedCall): Operation {
  const tool = toolOf(rules.tools, { tool: storableText(name) });
  return {
    turn: rules.turn,
    step,
    index,
    operationId: operationId ?? newUuid(),
    kind: 'tool',
    status: tool ? 'ready' : 'failed',
    tool: storableText(name),
    toolType: tool?.source.type ?? null,
    input: storableJson(input),
    output: null,
    error: tool ? null : noSuchTool(storableText(name), rules.unavailable),
    usage: null,
    fromSeq: null,
    failures: 0,
    retryAt: null,
    unavailableSince: null,
    model: null,
    repeatable: tool?.repeatable ?? false,
    expiresAt: null,
    childSessionId: null,
    agentVersion: null,
    unavailableServers: null,
    trace: null,
  };
}

export function toolOf(tools: readonly TurnTool[], call: Pick<Operation, 'tool'>): TurnTool | undefined {
  return tools.find(({ name }) => name === call.tool);
}

/** The tool calls of a step, in the model's order. */
export function callsOf(operations: readonly Operation[], step: number): Operation[] {
  return operations.filter((operation) => operation.step === step && operation.kind === 'tool');
}

/** A call that the model's provider ran itself: no operation, because it has ended before anything is known of it. */
export interface ShownCall extends RanCall {
  /** `call_…` */
  readonly toolCallId: string;
}

export interface ShownRan {
  readonly calls: readonly ShownCall[];
  readonly sources: readonly Source[];
}

export function newRan({ calls, sources }: Ran): ShownRan {
  const shown = calls.map(({ tool, input, output, error }) => ({
    toolCallId: toolCallIdOf({ operationId: newUuid() }),
    tool: storableText(tool),
    input: storableJson(input),
    ...(error === undefined ? { output: shortOrText(storableJson(output ?? null)) } : { error: storableText(error) }),
  }));
  return { calls: shown, sources: storableJson(sources) as Source[] };
}

/** A response as the transcript has it: first what it has shown, in the order of the journal. */
export function responseParts(text: string, calls: readonly Operation[], ran: ShownRan): MessagePart[] {
  const sources = ran.sources.length === 0 ? {} : { sources: [...ran.sources] };
  const by = 'provider' as const;
  return [
    ...(text === '' && ran.sources.length === 0 ? [] : [{ type: 'text' as const, text, ...sources }]),
    ...ran.calls.flatMap(({ toolCallId, tool, input, output, error }): MessagePart[] => [
      { type: 'tool_call', toolCallId, tool, input, by },
      { type: 'tool_result', toolCallId, ...(error === undefined ? { output } : { error }), by },
    ]),
    ...calls.map((call) => ({
      type: 'tool_call' as const,
      toolCallId: toolCallIdOf(call),
      tool: call.tool!,
      input: call.input,
      ...mockMark(call),
    })),
  ];
}

/** The results of the calls of the model's last response, in its order. */
export function resultParts(
  calls: readonly Operation[],
  transcript: readonly { role: string; content: readonly MessagePart[] }[],
): MessagePart[] {
  const response = transcript.findLast(({ role }) => role === 'assistant');
  const results = calls.map((call): MessagePart => {
    const toolCallId = toolCallIdOf(call);
    const asked = response?.content.find((part) => part.type === 'tool_call' && part.toolCallId === toolCallId);
    return {
      type: 'tool_result',
      toolCallId,
      ...(asked?.type === 'tool_call' && !isSameJson(asked.input, call.input) && { input: call.input }),
      ...(call.isLeftOut
        ? { error: LEFT_OUT }
        : call.error === null
          ? { output: call.output ?? null }
          : { error: call.error }),
      ...(call.status === 'unknown' && { outcomeUnknown: true }),
    };
  });
  return truncateToFit(results);
}

/** Puts the result of a call into it. If it may be repeated, it does not matter whether it took effect. */
export function endCall(call: Operation, outcome: ToolOutcome): void {
  if (outcome.error === undefined) {
    const { output } = outcome;
    Object.assign(call, {
      status: 'succeeded',
      output: output instanceof JsonText ? output : shortOrText(storableJson(output)),
    });
  } else {
    const isUnknown = outcome.outcomeUnknown && !call.repeatable;
    Object.assign(call, { status: isUnknown ? 'unknown' : 'failed', error: storableText(outcome.error) });
  }
}

/** With the reason, if it is left out of the session, or may belong to an MCP server that is unavailable. */
export function noSuchTool(name: string, unavailable: readonly string[]): string {
  const leftOut = [name, name.split('__')[0]!].map(leftOutToolText).find((text) => unavailable.includes(text));
  if (leftOut !== undefined) return leftOut;
  return [`There is no tool named "${name}".`, ...(name.includes('__') ? unavailable : [])].join(' ');
}

/** The error that the model gets for each call of a response that reached its token limit. */
export const CUT_OFF = 'The response reached its token limit, so this call did not run.';
export const OUTCOME_UNKNOWN = 'The service stopped while this call was running. It may or may not have taken effect.';
