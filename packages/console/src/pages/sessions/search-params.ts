// The search parameters of these pages.
import type { ChunkType, SessionStatus } from '@signalbox/client';
import {
  agentIdPattern,
  endUserIdPattern,
  environmentPattern,
  oneOf,
  operationIdPattern,
  sessionIdPattern,
  textIn,
} from '../../lib/search-params.ts';
import { currentTime } from '../../ui/time.tsx';
import { type Range, readRange, timesOf } from '../../ui/time-range.tsx';

export interface SessionSearch {
  status?: SessionStatus;
  agentId?: string;
  environment?: string;
  parentSessionId?: string;
  forkedFromSessionId?: string;
  endUserId?: string;
  /** Words, or the beginning of an id. */
  q?: string;
  /** Whether those that run drafts, as in the playground, are left out, or listed alone; without it, they are included. */
  drafts?: 'none' | 'only';
  /** Only those whose last turn failed. */
  hasError?: true;
  range?: Range;
  /** Newest first without it. */
  order?: 'asc';
  metadata?: Record<string, string>;
}

export const sessionStatuses = ['idle', 'running', 'waiting', 'completed', 'failed', 'cancelled'] as const;

export function sessionsSearch(search: Record<string, unknown>): SessionSearch {
  // The router parses digits as a number.
  const asText = (value: unknown) => (typeof value === 'number' ? String(value) : value);
  const endUserId = asText(search.endUserId);
  const q = asText(search.q);
  const { metadata } = search;
  const range = readRange(search.range);
  return {
    ...oneOf(search, 'status', sessionStatuses),
    ...textIn(search, 'agentId', agentIdPattern),
    ...textIn(search, 'environment', environmentPattern),
    ...textIn(search, 'parentSessionId', sessionIdPattern),
    ...textIn(search, 'forkedFromSessionId', sessionIdPattern),
    ...textIn({ endUserId }, 'endUserId', endUserIdPattern),
    ...textIn({ q }, 'q', /^.{1,200}$/su),
    ...oneOf(search, 'drafts', ['none', 'only'] as const),
    ...(search.hasError === true && { hasError: true as const }),
    ...(range && { range }),
    ...oneOf(search, 'order', ['asc'] as const),
    ...(isTexts(metadata) && { metadata }),
  };
}

/** The filters of the API. The presets of a range end now. */
export function filtersOf({ range, order: _, drafts, ...filters }: SessionSearch) {
  return {
    ...filters,
    ...(drafts && { draft: drafts === 'only' }),
    ...(range && timesOf(range, currentTime())),
  };
}

// The service's maximum.
export const MAX_METADATA = 10;

function isTexts(value: unknown): value is Record<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const entries = Object.entries(value);
  return entries.length > 0 && entries.length <= MAX_METADATA && entries.every(([, one]) => typeof one === 'string');
}

/** What a fork is compared with; without it, the session that it continues. */
export function compareSearch(search: Record<string, unknown>): { with?: string | undefined } {
  return textIn(search, 'with', sessionIdPattern);
}

export const sessionTabs = ['conversation', 'trace', 'chunks', 'files', 'webhooks', 'details'] as const;

export const chunkTypes = [
  'step.started',
  'message.started',
  'message.chunk',
  'reasoning.chunk',
  'tool.input.chunk',
  'message.reset',
  'tool.call',
  'tool.result',
  'file.created',
  'approval.requested',
  'approval.decided',
  'approval.resolved',
  'session.status',
  'turn.completed',
  'context.compacted',
] as const satisfies readonly ChunkType[];

/** Which view of a session is shown, by default the conversation, and the turn that a link leads to. */
export function sessionSearch(search: Record<string, unknown>): {
  tab?: (typeof sessionTabs)[number] | undefined;
  turn?: number | undefined;
  /** The operation that is open beside the trace. */
  step?: string | undefined;
  /** Which chunks are listed: of a type, from a turn on, with deltas of one text as one row or each as its own. */
  type?: (typeof chunkTypes)[number] | undefined;
  from?: number | undefined;
  deltas?: 'each' | undefined;
} {
  const [turn, from] = [Number(search.turn), Number(search.from)];
  // The name in links of earlier releases.
  const tab = search.tab === 'timeline' ? 'trace' : search.tab;
  return {
    ...oneOf({ tab }, 'tab', sessionTabs),
    ...(Number.isInteger(turn) && turn > 0 && { turn }),
    ...textIn(search, 'step', operationIdPattern),
    ...oneOf(search, 'type', chunkTypes),
    ...(Number.isInteger(from) && from > 0 && { from }),
    ...oneOf(search, 'deltas', ['each'] as const),
  };
}
