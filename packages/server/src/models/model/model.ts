// The interface between the turn machine and a model: one step per call. The loop over steps, retries, approvals and durability
// are ours. The other files of this folder implement it for each provider.
import type {
  Agent,
  FilePart,
  MessagePart,
  Model as ModelConfig,
  RetryWithout,
  WebSearchTool,
} from '@signalbox/contract';
import type { OmittedFromRequest } from '../../session-rows/operation-trace.ts';
import type { TokenUsage } from '../../session-rows/operations.ts';
import type { Ran } from '../../session-rows/ran.ts';
import type { TurnTool } from '../../tools/tool/tool.ts';
import type { RefusedParameter } from './refused-parameters.ts';

export interface ModelCall {
  organizationId: string;
  /** The session, for providers that find cached prompts by a key: its calls share a growing prefix. */
  sessionId: string;
  environment: string;
  config: ModelConfig;
  instructions: string;
  tools: readonly Pick<TurnTool, 'name' | 'description' | 'inputSchema'>[];
  /** The agent's `web_search`, if it has one: the provider runs it. */
  webSearch?: Omit<WebSearchTool, 'type'> | undefined;
  /** Whether the transcript ends with a response that its provider has paused, and that is to be continued without a message. */
  isPaused?: boolean;
  limits: Pick<Agent['limits'], 'maxOutputTokens'>;
  /** JSON Schema that the turn's response must match. A provider without support for it ignores it: the caller validates. */
  outputSchema: Record<string, unknown> | null;
  /**
   * Oldest first; ends with a user message, with the results of the last step's tool calls, or with a response that was cut off and
   * is to be continued.
   */
  transcript: readonly ModelEntry[];
  /** Ids of the files that are only described to the model. */
  withoutFiles?: readonly string[];
  /** The same, because the model's provider has refused them. */
  refusedFiles?: readonly string[];
  /** `summary`: the response is a summary of the messages, not a step. */
  purpose?: 'summary';
  /** What is shown besides text while the model writes it: its reasoning, and the input of calls. Default: neither. */
  shows?: { readonly reasoning?: boolean; readonly toolInput?: boolean };
  /** What the model's server does not know: it is left out of the request, or has its other name. */
  withoutParameters?: readonly RefusedParameter[];
  /** Whether the model's server has refused calls without the reasoning before them, which another model may have written. */
  returnsReasoning?: boolean;
  /** How many model calls of the session ended before, failed ones included: selects the step of a script. */
  callsBefore: number;
  /** Whether a person waits for the response, so that the call may try a model that is known to be unavailable (availability.ts). */
  isAwaited?: boolean;
  /** Whether its session has waited for its models: a response says that an outage is over. */
  wasParked?: boolean;
  /** UUID of the operation that it belongs to. A call without one is not limited (limits/). */
  operationId?: string;
  /** How many tokens the model reads, estimated. */
  inputTokens?: number;
}

/** `costUsd`: a worker's own calculation; otherwise the prices of the model apply. */
export type ReportedUsage = TokenUsage & { costUsd?: number };

export interface ModelEntry {
  role: 'user' | 'assistant' | 'tool';
  content: readonly MessagePart[];
  /** For `assistant`: from the `finish` event of this response. */
  providerData?: unknown;
  /** UUID of the message, or one for each part. Undefined and null: there is none that can be left out. */
  messageId?: string | readonly (string | null)[];
}

export type ModelEvent =
  | { type: 'text'; delta: string }
  /** A piece of the model's reasoning, for people. The model gets its own form of it back in `providerData`. */
  | { type: 'reasoning'; delta: string }
  /** A piece of a call's input while the model writes it, as JSON. The complete call has the same `operationId`. */
  | { type: 'toolInput'; operationId: string; name: string; delta: string }
  /** Text that is in the journal already: a worker appends its own. */
  | { type: 'shown'; text: string }
  /**
   * A complete call; `input` is as the model gave it, not yet validated against the tool's schema. `operationId`: the call's, if its
   * input has been shown.
   */
  | { type: 'toolCall'; name: string; input: unknown; operationId?: string }
  /** What the provider ran itself, and what the text cites; once, when the response is complete. It may be shown. */
  | ({ type: 'ran' } & Ran)
  /**
   * The last event. `providerData` is JSON of at most PROVIDER_DATA_MAX_CHARACTERS that only the provider understands: reasoning
   * that it needs to receive again, usually encrypted. It is stored with the response, returned in the transcript, and never
   * shown.
   */
  | {
      type: 'finish';
      /** `maxOutputTokens`: the response was cut off, so earlier events may be incomplete, including the last call's input. */
      reason: 'endTurn' | 'toolCalls' | 'maxOutputTokens' | 'refusal';
      /** `costUsd` if the worker or the provider reports it; otherwise it is computed from the price list. */
      usage: ReportedUsage;
      providerData?: unknown;
      /** Whether the provider has paused the response, which another request continues. Only within this folder. */
      isPaused?: boolean;
      /** What the request lacked, because the provider had refused it before. */
      sentWithout?: readonly OmittedFromRequest[];
      /** Ids of files that the provider refused; it accepted the request without them. */
      refusedFiles?: readonly string[];
    };

/** As JSON. A response with more data is stored without it. */
export const PROVIDER_DATA_MAX_CHARACTERS = 1024 * 1024;

/**
 * Calls the model for one step. Ends with `finish`, throws a ModelFailure, or throws the signal's reason when it is aborted.
 * It throws nothing else: a provider's own error may contain the whole prompt, so it never leaves this folder.
 */
export type AskModel = (call: ModelCall, signal: AbortSignal) => AsyncGenerator<ModelEvent>;

/** Why a model call failed. The message may be shown: it contains no prompt, no key and no full response of the provider. */
export class ModelFailure extends Error {
  override readonly name = 'ModelFailure';
  /** A ModelFailureCode, or a code that a worker sent. */
  readonly code: string;
  /** Whether a retry can help. */
  readonly retryable: boolean;
  /** How long the provider asks to wait before a retry; undefined if it does not say. */
  readonly retryAfterMs: number | undefined;
  /** Status of the provider's response; undefined if the call failed in another way. */
  readonly httpStatus: number | undefined;
  /** What the provider names as the part of the request that is at fault: `tools[5].function.parameters`. */
  readonly param: string | undefined;
  /** A parameter that the server does not know, and that can be left out or named differently. */
  readonly refusedParameter: RefusedParameter | undefined;
  /** The file that the provider refuses the request for, if that is certain. */
  readonly refusedFile: FilePart | undefined;
  /** What of the request is refused, as far as a retry can leave it out: each of it, if it may be one of several. */
  readonly retryWithout: RetryWithout | undefined;
  /** Whether the server wants the reasoning before each call. */
  readonly wantsReasoning: boolean;
  /** Whether the request is at fault, so that no other model is asked. A rejected key or an unknown model is not its fault. */
  readonly isOfRequest: boolean;
  /** Whether a filter of the provider refuses what is asked: no failure of the turn, but the end of its response. */
  readonly isRefusal: boolean;
  /** Whether the model was not called, because it is known to be unavailable (availability.ts). */
  readonly isSkipped: boolean;
  /** For a call that waits for a limit of its environment (limits/): when its turn comes, at the latest. */
  readonly waitsUntil: Date | undefined;
  /** What a worker used before it failed; only workers report it. */
  readonly usage: ReportedUsage | undefined;

  constructor(
    code: string,
    message: string,
    more: {
      retryable: boolean;
      retryAfterMs?: number | undefined;
      httpStatus?: number | undefined;
      param?: string | undefined;
      refusedParameter?: RefusedParameter | undefined;
      refusedFile?: FilePart | undefined;
      retryWithout?: RetryWithout | undefined;
      wantsReasoning?: boolean;
      isOfRequest?: boolean;
      isRefusal?: boolean;
      isSkipped?: boolean;
      waitsUntil?: Date | undefined;
      usage?: ReportedUsage | undefined;
    },
  ) {
    super(message);
    this.code = code;
    this.retryable = more.retryable;
    this.retryAfterMs = more.retryAfterMs;
    this.httpStatus = more.httpStatus;
    this.param = more.param;
    this.refusedParameter = more.refusedParameter;
    this.refusedFile = more.refusedFile;
    this.retryWithout = more.retryWithout;
    this.wantsReasoning = more.wantsReasoning ?? false;
    this.isOfRequest =
      more.isOfRequest ?? (code === 'model_rejected' && ![401, 402, 403, 404].includes(more.httpStatus ?? 0));
    this.isRefusal = more.isRefusal ?? false;
    this.waitsUntil = more.waitsUntil;
    this.isSkipped = more.isSkipped ?? false;
    this.usage = more.usage;
  }
}

/**
 * - `model_timeout`: no response in time, or it stalled
 * - `model_rate_limited`: 429
 * - `model_limit_reached`: the environment's own limit for the model; the call waits for its turn
 * - `model_unavailable`: 5xx, a refused connection, a stream that broke off
 * - `model_key_missing`: there is no key, and the provider requires one
 * - `model_key_rejected`: the provider refuses the key
 * - `model_context_too_long`: the request is longer than the model can read
 * - `model_rejected`: the provider refuses the request (4xx: model name)
 * - `model_not_allowed`: the provider's address, or the host for this key, is not allowed
 * - `model_protocol`: the response is not in the provider's format
 */
export type ModelFailureCode =
  | 'model_timeout'
  | 'model_rate_limited'
  | 'model_limit_reached'
  | 'model_unavailable'
  | 'model_key_missing'
  | 'model_key_rejected'
  | 'model_context_too_long'
  | 'model_rejected'
  | 'model_not_allowed'
  | 'model_protocol';
