// How often an environment calls a model: requests and tokens a minute, for all nodes together.
//
// A call that would be more than the limit is not sent to its provider. Its session is parked and waits in order, as a row (turn.ts), for
// as long as it takes; the turn's time does not run meanwhile. Each node knows which environments have limits, so that calls of all others
// cost nothing: it reads them when it starts, when a hint says that they have changed, and every minute, because hints may be lost.
import sql from 'sql-template-tag';
import { OVER, orAborted } from '../../lib/aborted.ts';
import { coalesced } from '../../lib/coalesced.ts';
import { uuidOf } from '../../lib/ids.ts';
import type { Platform } from '../../platform.ts';
import { modelName } from '../../usage/prices.ts';
import { type AskModel, type ModelCall, type ModelEvent, ModelFailure } from '../model/model.ts';
import { createLimitQueue, type LimitQueue } from './limit-queue.ts';
import type { LimitKey } from './turn.ts';
import { type Rate, tokensOfUsage } from './window.ts';

export interface ModelLimits {
  /** Resolves when this node knows the limits. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** The same model within the limits. A call that has to wait throws a ModelFailure whose `waitsUntil` is set. */
  within(ask: AskModel): AskModel;
}

// Besides hints.
const READ_EVERY_MS = 60_000;
/** What a response takes at first, unless it may be shorter. The difference is corrected once it is known. */
const RESPONSE_TOKENS = 1_000;

interface Known extends LimitKey {
  hasTokens: boolean;
  isAwaited: boolean;
}

export function createModelLimits(platform: Pick<Platform, 'db' | 'shards' | 'clock' | 'wake' | 'log'>): ModelLimits {
  const { shards, clock, wake, log } = platform;
  const stopping = new AbortController();
  /** By environment, then by the model that a limit names. */
  let limits = new Map<string, Map<string, { queue: LimitQueue; hasTokens: boolean }>>();
  let reading: Promise<void> | undefined;
  let unsubscribe = () => {};

  const read = coalesced(async () => {
    const { rows, covers } = await shards.query<Known>(
      'reading limits of model calls',
      (within) => sql`
      select l.organization_id as "organizationId", l.environment, l.model, l.tokens_per_minute is not null as "hasTokens",
        exists (select from model_limit_waits w
          where w.organization_id = l.organization_id and w.environment = l.environment and w.model = l.model) as "isAwaited"
      from model_limits l where true ${within(sql`l.organization_id`)}`,
    );
    const found: typeof limits = new Map();
    for (const { hasTokens, isAwaited, ...key } of rows) {
      const name = nameOf(key);
      const queue = limits.get(name)?.get(key.model)?.queue ?? createLimitQueue(platform, key);
      found.set(name, (found.get(name) ?? new Map()).set(key.model, { queue, hasTokens }));
      if (isAwaited) queue.look();
    }
    for (const [name, before] of limits) {
      if (!covers(name.slice(0, name.indexOf(' ')))) found.set(name, before);
      for (const [model, { queue }] of before) if (found.get(name)?.get(model)?.queue !== queue) queue.stop();
    }
    limits = found;
  });

  function readAgain(): Promise<void> {
    return read().catch((error) => log.warn({ err: error }, 'reading limits of model calls failed; retrying'));
  }

  async function readNowAndThen(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.sleep(READ_EVERY_MS, stopping.signal).catch(() => {});
      if (!stopping.signal.aborted) await readAgain();
    }
  }

  async function* askWithin(
    { queue, hasTokens }: { queue: LimitQueue; hasTokens: boolean },
    ask: AskModel,
    operationId: string,
    call: ModelCall,
    signal: AbortSignal,
  ): AsyncGenerator<ModelEvent> {
    const tokens = hasTokens ? estimatedTokens(call) : 0;
    const asked = queue
      .ask({ operationId, sessionId: uuidOf('ses', call.sessionId), tokens, since: clock.now() })
      .catch(() => {
        throw new ModelFailure('model_unavailable', 'The limits of the environment could not be read', {
          retryable: true,
        });
      });
    const admission = await orAborted(asked, signal);
    if (!admission.isAdmitted) throw waits(call, admission);
    for await (const event of ask(call, signal)) {
      if (event.type === 'finish' && hasTokens) {
        const moreTokens = tokensOfUsage(event.usage) - tokens;
        if (moreTokens !== 0) queue.correct({ startMs: admission.startMs, moreTokens });
      }
      yield event;
    }
  }

  return {
    async start() {
      unsubscribe = wake.subscribe('limits', () => void readAgain());
      await read();
      reading = readNowAndThen();
    },
    async stop() {
      unsubscribe();
      stopping.abort(OVER);
      await reading;
      for (const ofEnvironment of limits.values()) for (const { queue } of ofEnvironment.values()) queue.stop();
    },
    within: (ask) => (call, signal) => {
      const { operationId } = call;
      const ofEnvironment = limits.get(nameOf(call));
      const limit = ofEnvironment && (ofEnvironment.get(modelName(call.config)) ?? ofEnvironment.get('*'));
      if (!limit || operationId === undefined) return ask(call, signal);
      return askWithin(limit, ask, operationId, call, signal);
    },
  };
}

function nameOf({ organizationId, environment }: Pick<LimitKey, 'organizationId' | 'environment'>): string {
  return `${organizationId} ${environment}`;
}

function estimatedTokens({ inputTokens = 0, limits }: ModelCall): number {
  return inputTokens + Math.min(RESPONSE_TOKENS, limits.maxOutputTokens ?? RESPONSE_TOKENS);
}

function waits({ environment, config }: ModelCall, { until, rate }: { until: Date; rate: Rate }): ModelFailure {
  const message = `The environment ${environment} has reached its limit for ${modelName(config)}: ${rateText(rate)}`;
  return new ModelFailure('model_limit_reached', message, { retryable: true, isSkipped: true, waitsUntil: until });
}

function rateText({ requestsPerMinute, tokensPerMinute }: Rate): string {
  const parts = [
    requestsPerMinute !== null && `${requestsPerMinute} ${requestsPerMinute === 1 ? 'request' : 'requests'}`,
    tokensPerMinute !== null && `${tokensPerMinute} ${tokensPerMinute === 1 ? 'token' : 'tokens'}`,
  ];
  return `${parts.filter(Boolean).join(' and ')} a minute`;
}
