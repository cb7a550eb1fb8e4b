// What the turn machine asks of a model: one step a call. The loop over steps, retries, approvals and durability are ours;
// what differs between providers is in the files beside this one.
import type { Agent, MessagePart, Model as ModelConfig, Tool } from '@signalbox/contract';
import type { TokenUsage } from '../../sessions/operations.ts';

export interface ModelCall {
  organizationId: string;
  environment: string;
  config: ModelConfig;
  instructions: string;
  tools: readonly Tool[];
  limits: Agent['limits'];
  /** Oldest first; ends with a user message or with the results of the last step's tool calls. */
  transcript: readonly { role: 'user' | 'assistant' | 'tool'; content: readonly MessagePart[] }[];
  /** How many model calls of the Session answered or failed before: the scripted model's place in its script. */
  callsBefore: number;
}

export type ModelEvent =
  | { type: 'text'; delta: string }
  /** A whole call; `input` is as the model gave it, not yet checked against the tool's schema. */
  | { type: 'toolCall'; name: string; input: unknown }
  /** The last event. */
  | { type: 'finish'; reason: 'endTurn' | 'toolCalls' | 'length' | 'refusal'; usage: TokenUsage };

/**
 * Asks the model for one step. Ends with `finish`, or throws a ModelFailure, or throws the signal's reason when it is aborted.
 * Nothing else is ever thrown: a provider's own error may hold the whole prompt, so it stays inside.
 */
export type AskModel = (call: ModelCall, signal: AbortSignal) => AsyncGenerator<ModelEvent>;

/** Why a model did not answer, in words that may be shown: no prompt, no key, no answer of the provider in full. */
export class ModelFailure extends Error {
  override readonly name = 'ModelFailure';
  readonly code: ModelFailureCode;
  /** Whether asking again can help. */
  readonly retryable: boolean;
  /** How long the provider asks to wait before; undefined where it does not say. */
  readonly retryAfterMs: number | undefined;

  constructor(code: ModelFailureCode, message: string, more: { retryable: boolean; retryAfterMs?: number }) {
    super(message);
    this.code = code;
    this.retryable = more.retryable;
    this.retryAfterMs = more.retryAfterMs;
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
