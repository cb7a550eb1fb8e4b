// What the turn machine asks of a model: one step a call. The loop over steps, retries, approvals and durability are ours;
// what differs between providers is in the files beside this one.
import type { Agent, MessagePart, Model as ModelConfig } from '@signalbox/contract';
import type { TokenUsage } from '../../sessions/state/operations.ts';
import type { TurnTool } from '../tools/tool.ts';

export interface ModelCall {
  organizationId: string;
  environment: string;
  config: ModelConfig;
  instructions: string;
  tools: readonly Pick<TurnTool, 'name' | 'description' | 'inputSchema'>[];
  limits: Pick<Agent['limits'], 'maxOutputTokens'>;
  /** What the answer of the turn must be, as JSON. A provider that can't be told is asked without: the caller checks. */
  outputSchema: Record<string, unknown> | null;
  /** Oldest first; ends with a user message or with the results of the last step's tool calls. */
  transcript: readonly ModelEntry[];
  /** How many model calls of the Session answered or failed before: the scripted model's place in its script. */
  callsBefore: number;
}

export interface ModelEntry {
  role: 'user' | 'assistant' | 'tool';
  content: readonly MessagePart[];
  /** For `assistant`: what came with the `finish` of this answer. */
  providerData?: unknown;
}

export type ModelEvent =
  | { type: 'text'; delta: string }
  /** Text that is in the journal already: of a program of the integrator's, which appends it itself. */
  | { type: 'shown'; text: string }
  /** A whole call; `input` is as the model gave it, not yet checked against the tool's schema. */
  | { type: 'toolCall'; name: string; input: unknown }
  /**
   * The last event. `providerData` is JSON of at most PROVIDER_DATA_MAX_CHARACTERS, of which only the provider knows the meaning
   * (reasoning that it wants to see again, mostly under a seal). It is stored with the answer, handed back in the transcript,
   * and shown to nobody.
   */
  | {
      type: 'finish';
      /** `maxOutputTokens`: the answer was cut, so what precedes this event may be incomplete, the last call's input too. */
      reason: 'endTurn' | 'toolCalls' | 'maxOutputTokens' | 'refusal';
      /** `costUsd` where who answers says what it cost; else its price is looked up. */
      usage: TokenUsage & { costUsd?: number };
      providerData?: unknown;
    };

/** As JSON. An answer whose data is longer comes without. */
export const PROVIDER_DATA_MAX_CHARACTERS = 1024 * 1024;

/**
 * Asks the model for one step. Ends with `finish`, or throws a ModelFailure, or throws the signal's reason when it is aborted.
 * Nothing else is ever thrown: a provider's own error may hold the whole prompt, so it stays inside.
 */
export type AskModel = (call: ModelCall, signal: AbortSignal) => AsyncGenerator<ModelEvent>;

/** Why a model did not answer, in words that may be shown: no prompt, no key, no answer of the provider in full. */
export class ModelFailure extends Error {
  override readonly name = 'ModelFailure';
  /** A ModelFailureCode, or what a program of the integrator's says. */
  readonly code: string;
  /** Whether asking again can help. */
  readonly retryable: boolean;
  /** How long the provider asks to wait before; undefined where it does not say. */
  readonly retryAfterMs: number | undefined;
  /** Of the provider's answer; undefined where it did not refuse by one. */
  readonly httpStatus: number | undefined;

  constructor(code: string, message: string, more: { retryable: boolean; retryAfterMs?: number; httpStatus?: number }) {
    super(message);
    this.code = code;
    this.retryable = more.retryable;
    this.retryAfterMs = more.retryAfterMs;
    this.httpStatus = more.httpStatus;
  }
}

/**
 * - `model_timeout`: no answer, or none any more, in time
 * - `model_rate_limited`: 429
 * - `model_unavailable`: 5xx, a refused connection, a stream that broke off
 * - `model_rejected`: the provider does not take the request (4xx: key, model name, context length)
 * - `model_not_allowed`: its address or its key's host is not allowed
 * - `model_protocol`: the answer is not in the provider's format
 */
export type ModelFailureCode =
  | 'model_timeout'
  | 'model_rate_limited'
  | 'model_unavailable'
  | 'model_rejected'
  | 'model_not_allowed'
  | 'model_protocol';
