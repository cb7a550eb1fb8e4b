// Metrics and traces of a turn: the turn itself, its model calls and its tool calls.
//
// A span of a turn lasts as long as a node runs it. A parked turn has no span; the node that resumes it begins another, in the
// same trace. What was sent to models and tools is in no span, unless the operator wants it (trace-content.ts).
import { type Model, providerFacts } from '@signalbox/contract';
import type { Subject } from '../analytics/recorder.ts';
import { formatId } from '../lib/ids.ts';
import {
  type AskModel,
  type ModelCall,
  type ModelEvent,
  ModelFailure,
  type ModelFailureCode,
  type ReportedUsage,
} from '../models/model/model.ts';
import type { Attributes, Span } from '../observe/tracing.ts';
import type { SessionRow } from '../session-rows/session.ts';
import type { RunTool, ToolOutcome } from '../tools/tool/tool.ts';
import { modelName } from '../usage/prices.ts';
import { argumentsContent, askedContent, callIdOf, createHeardResponse, resultContent } from './trace-content.ts';
import type { TurnContext } from './turn-context.ts';

const failureCodes: readonly string[] = [
  'model_timeout',
  'model_rate_limited',
  'model_unavailable',
  'model_key_missing',
  'model_key_rejected',
  'model_context_too_long',
  'model_rejected',
  'model_not_allowed',
  'model_protocol',
] satisfies ModelFailureCode[];

/** As OpenTelemetry's conventions name them. */
const finishReasons = {
  endTurn: 'stop',
  maxOutputTokens: 'length',
  refusal: 'content_filter',
  toolCalls: 'tool_call',
} satisfies Record<Extract<ModelEvent, { type: 'finish' }>['reason'], string>;

function subjectOf({ organizationId, environment, agentId, pinnedVersion }: SessionRow, model: Model): Subject {
  return { organizationId, environment, agentId, pinnedVersion, model: modelName(model) };
}

/** A child of the request that sent the turn's message. */
export function turnSpan({ platform: { tracing }, session: { row }, state }: TurnContext): Span | undefined {
  return tracing?.span(
    `invoke_agent ${state.definition.name}`,
    'internal',
    {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.id': formatId('agt', row.agentId),
      'gen_ai.agent.name': state.definition.name,
      'gen_ai.conversation.id': formatId('ses', row.sessionId),
      'signalbox.organization.id': formatId('org', row.organizationId),
      'signalbox.environment': row.environment,
      'signalbox.turn': row.turn,
    },
    row.traceParent,
  );
}

/** The end of a turn; one that waits has not ended. `errorCode` if it failed. */
export function recordTurnEnd(
  { platform: { metrics, clock, analytics }, session: { row }, state, span, startedAt, deadline }: TurnContext,
  outcome: string,
  errorCode?: string,
): void {
  const { definition } = state;
  const subject = subjectOf(row, definition.model);
  // The deadline is moved by the time that the turn waits, so this is the time that it worked, on every node.
  const leftMs = deadline.getTime() - clock.now().getTime();
  analytics.count(subject, 'turns');
  analytics.observe(subject, 'turnMs', definition.limits.turnTimeoutSeconds * 1000 - leftMs);
  if (errorCode !== undefined) analytics.countFailure(subject, { code: errorCode, sessionId: row.sessionId });
  metrics.turns.inc({ outcome });
  metrics.turnSeconds.observe(Math.max(0, clock.now().getTime() - startedAt.getTime()) / 1000);
  span?.end({ 'signalbox.stop_reason': outcome }, errorCode);
}

/** The model, with metrics and spans. */
export function withModelTelemetry(
  { platform: { metrics, tracing, analytics, clock }, session: { row }, span: turn }: TurnContext,
  ask: AskModel,
): AskModel {
  return async function* observed(call, signal): AsyncGenerator<ModelEvent> {
    const { provider, model } = call.config;
    const took = metrics.modelSeconds.startTimer({ provider });
    const subject = subjectOf(row, call.config);
    const calledAt = clock.now().getTime();
    let isFirst = true;
    const span = tracing?.span(`chat ${model ?? provider}`, 'client', chatAttributes(call), turn?.traceParent);
    const heard = span?.takesContent ? createHeardResponse(call) : undefined;
    let outcome = 'stopped';
    let more: Attributes = {};
    let finishReason = 'error';
    try {
      for await (const event of ask(call, signal)) {
        if (isFirst) analytics.observe(subject, 'firstTokenMs', clock.now().getTime() - calledAt);
        isFirst = false;
        heard?.add(event);
        if (event.type === 'finish') {
          outcome = 'succeeded';
          finishReason = finishReasons[event.reason];
          more = { ...usageAttributes(event.usage), 'gen_ai.response.finish_reasons': [finishReason] };
        }
        yield event;
      }
      // It ended without a finish reason, which makes the turn fail.
      if (outcome === 'stopped') outcome = 'model_protocol';
    } catch (error) {
      if (error instanceof ModelFailure && error.isSkipped) outcome = 'skipped';
      else if (error instanceof ModelFailure) outcome = failureCodes.includes(error.code) ? error.code : 'model_error';
      else if (!signal.aborted) outcome = 'model_error';
      throw error;
    } finally {
      if (outcome !== 'skipped') took();
      metrics.modelCalls.inc({ provider, outcome });
      if (outcome.startsWith('model_')) analytics.count(subject, 'modelCallsFailed');
      const content =
        heard && outcome !== 'skipped' ? { ...askedContent(call), ...heard.content(finishReason) } : undefined;
      span?.end(more, outcome.startsWith('model_') ? outcome : undefined, content);
    }
  };
}

function chatAttributes({ config: { provider, model }, sessionId, limits, outputSchema }: ModelCall): Attributes {
  return {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': providerFacts[provider].telemetryName,
    'gen_ai.request.model': model,
    'gen_ai.request.max_tokens': limits.maxOutputTokens ?? undefined,
    'gen_ai.output.type': outputSchema ? 'json' : undefined,
    'gen_ai.conversation.id': sessionId,
  };
}

function usageAttributes({ inputTokens, outputTokens, cachedTokens, cacheWriteTokens }: ReportedUsage): Attributes {
  return {
    'gen_ai.usage.input_tokens': inputTokens,
    'gen_ai.usage.output_tokens': outputTokens,
    'gen_ai.usage.cache_read.input_tokens': cachedTokens || undefined,
    'gen_ai.usage.cache_creation.input_tokens': cacheWriteTokens || undefined,
  };
}

/** The tools, with metrics and spans, for this session. */
export function withToolTelemetry(
  { platform: { metrics, tracing, analytics }, session, state, span: turn }: TurnContext,
  run: RunTool,
): RunTool {
  const { sessionId } = session.row;
  return async (call, signal) => {
    const { type } = call.tool.source;
    const took = metrics.toolSeconds.startTimer({ type });
    const span = tracing?.span(
      `execute_tool ${call.tool.name}`,
      'internal',
      {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': call.tool.name,
        'gen_ai.tool.call.id': callIdOf(call.operationId),
        // As the conventions call a tool that the agent's side runs, with an API of others.
        'gen_ai.tool.type': type === 'http' || type === 'mcp' ? 'extension' : undefined,
        'gen_ai.conversation.id': formatId('ses', sessionId),
        'signalbox.tool.type': type,
      },
      turn?.traceParent,
    );
    let outcome = 'stopped';
    let result: ToolOutcome | undefined;
    try {
      result = await run({ ...call, sessionId }, signal);
      outcome = result.error === undefined ? 'succeeded' : 'failed';
      return result;
    } catch (error) {
      if (!signal.aborted) outcome = 'failed';
      throw error;
    } finally {
      took();
      metrics.toolCalls.inc({ type, outcome });
      const subject = subjectOf(session.row, state.definition.model);
      analytics.count(subject, 'toolCalls', ...(outcome === 'failed' ? ['toolCallsFailed' as const] : []));
      const content = span?.takesContent
        ? { ...argumentsContent(call.input), ...(result && resultContent(result)) }
        : undefined;
      span?.end({}, outcome === 'failed' ? 'tool_error' : undefined, content);
    }
  };
}
