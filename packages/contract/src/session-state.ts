/** The state of a session and of its turns, as the session and its chunks show it. */
import { RetryWithout } from './left-out.ts';
import { Id, Nullable, OneOf, type Static, Timestamp, Type } from './schema.ts';

/** Computed once, when a call ends. */
const CostUsd = Nullable(Type.Number(), {
  description:
    'At the prices of the time of each call; null if no call had one. `Organization.pricesDate` is the day of the built-in prices.',
});

/**
 * The status of a session.
 *
 * - `idle`: the turn has ended and nothing is awaited; a message starts the next one, and a turn that failed can be retried.
 *   → running, completed, cancelled
 * - `running`: a turn is in progress. → idle, waiting, completed, failed, cancelled
 * - `waiting`: paused; `waitingFor` says for what. → running once all of it has arrived, idle or completed (interrupted),
 *   cancelled
 * - `completed`, `failed`, `cancelled`: final. `failed`: the session was to complete with a turn, and that turn failed.
 */
export const sessionStatuses = ['idle', 'running', 'waiting', 'completed', 'failed', 'cancelled'] as const;
export const SessionStatus = OneOf(sessionStatuses, { title: 'SessionStatus' });
export type SessionStatus = Static<typeof SessionStatus>;

/** Why the last turn ended. `maxOutputTokens`: a token limit cut the response, which is shown up to there. */
export const StopReason = OneOf(
  ['endTurn', 'maxOutputTokens', 'maxSteps', 'budgetReached', 'refusal', 'interrupted', 'timedOut', 'error'],
  {
    title: 'StopReason',
  },
);
export type StopReason = Static<typeof StopReason>;

/** Why a turn failed, for people. It never contains a prompt or a secret. */
export const SessionError = Type.Object(
  {
    code: Type.String(),
    message: Type.String(),
    retryWithout: Type.Optional(
      Type.Unsafe<RetryWithout>({
        ...RetryWithout,
        description:
          'What the provider refuses, if that can be left out: the `without` of a retry of the turn. If it is one of several, all of them are named, and one may be enough.',
      }),
    ),
  },
  { title: 'SessionError' },
);
export type SessionError = Static<typeof SessionError>;

/**
 * What a waiting session waits for; an array is empty if nothing of its kind is awaited. `model`: the agent's model and its
 * fallbacks are unavailable, or the call waits for a limit of the environment: then `error.code` is `model_limit_reached`.
 */
export const WaitingFor = Type.Object(
  {
    type: OneOf(['approval', 'toolResult', 'session', 'several', 'model']),
    operationIds: Type.Array(Id('op')),
    toolCallIds: Type.Array(Id('call')),
    sessionIds: Type.Array(Id('ses')),
    expiresAt: Nullable(Timestamp),
    retryAt: Type.Optional(
      Type.Unsafe<string>({
        ...Timestamp,
        description:
          'When the model is called again; present if `type` is `model`. A call that waits for a limit of the environment is made at about this time, or before.',
      }),
    ),
    error: Type.Optional(
      Type.Unsafe<SessionError>({
        ...SessionError,
        description:
          'How the last call of the model failed, or which limit the call waits for; present if `type` is `model`.',
      }),
    ),
  },
  { title: 'WaitingFor' },
);
export type WaitingFor = Static<typeof WaitingFor>;

/** Some providers charge more for these. */
export const CacheWriteTokens = Type.Optional(
  Type.Integer({ description: "Input tokens that were written to the provider's cache. Left out if there are none." }),
);

/** Providers charge for these apart from tokens. */
export const WebSearches = Type.Optional(
  Type.Integer({
    description: 'Searches of the web that the provider ran itself, as it reports them. Left out if there are none.',
  }),
);

/** Tokens and calls: of the turn in `turn.completed`, of all turns on the session. */
export const Usage = Type.Object(
  {
    inputTokens: Type.Integer(),
    outputTokens: Type.Integer(),
    cachedTokens: Type.Integer({ description: "Input tokens that came from the provider's cache." }),
    cacheWriteTokens: CacheWriteTokens,
    webSearches: WebSearches,
    steps: Type.Integer({ description: 'Model calls.' }),
    toolCalls: Type.Integer(),
    costUsd: CostUsd,
  },
  { title: 'Usage' },
);
export type Usage = Static<typeof Usage>;

/** What one model call used. */
export const TokensAndCost = Type.Object(
  {
    inputTokens: Type.Integer(),
    outputTokens: Type.Integer(),
    cachedTokens: Type.Integer(),
    cacheWriteTokens: CacheWriteTokens,
    webSearches: WebSearches,
    costUsd: CostUsd,
  },
  { title: 'ModelCallUsage' },
);
