// What calls have taken of a limit within the last minute, and which waiting calls may be made now.
//
// The last minute is counted in slices. A slice counts until a minute after its end, so no minute has more than the limit, wherever it
// begins. A call takes its tokens by estimate before it is made, and the difference afterwards.
import type { ReportedUsage } from '../model/model.ts';

/** Null: unlimited. */
export interface Rate {
  requestsPerMinute: number | null;
  tokensPerMinute: number | null;
}

/** When it began, in ms since 1970, and what calls took in it. */
export type Slice = [startMs: number, requests: number, tokens: number];

export const SLICE_MS = 2_000;
const MINUTE_MS = 60_000;

/** A copy of the slices that still count. */
function counted(taken: readonly Slice[], nowMs: number): Slice[] {
  return taken.flatMap(([startMs, ...used]): Slice[] => (endOf(startMs) > nowMs ? [[startMs, ...used]] : []));
}

/** When a slice no longer counts. */
function endOf(startMs: number): number {
  return startMs + SLICE_MS + MINUTE_MS;
}

export function sliceAt(nowMs: number): number {
  return nowMs - (nowMs % SLICE_MS);
}

/** Whether a call may be made. One that alone takes more than the limit is made once no other counts. */
function fits({ requestsPerMinute, tokensPerMinute }: Rate, taken: readonly Slice[], tokens: number): boolean {
  const used = sumOf(taken);
  return (
    (requestsPerMinute === null || used.requests < requestsPerMinute) &&
    (tokensPerMinute === null || used.tokens + tokens <= tokensPerMinute || used.tokens <= 0)
  );
}

/** Takes for as many calls as may be made now, in their order. `tokens`: of each. */
export function takeInOrder(
  rate: Rate,
  before: readonly Slice[],
  tokens: readonly number[],
  nowMs: number,
): { count: number; taken: Slice[] } {
  const taken = counted(before, nowMs);
  let count = 0;
  for (const ofCall of tokens) {
    if (!fits(rate, taken, ofCall)) break;
    add(taken, nowMs, 1, ofCall);
    count += 1;
  }
  return { count, taken };
}

/** When the first call that waits may be made, if no other is made before. */
export function freeAt(rate: Rate, taken: readonly Slice[], tokens: number, nowMs: number): number {
  const left = counted(taken, nowMs).toSorted(([a], [b]) => a - b);
  let atMs = nowMs;
  for (let first = left[0]; first && !fits(rate, left, tokens); first = left[0]) {
    atMs = endOf(first[0]);
    left.shift();
  }
  return atMs;
}

/** By when a call is made if each takes what is estimated. `ahead`: the calls before it, and their tokens with its own. */
export function latestTurn(
  { requestsPerMinute, tokensPerMinute }: Rate,
  taken: readonly Slice[],
  ahead: { requests: number; tokens: number },
  nowMs: number,
): number {
  const used = sumOf(counted(taken, nowMs));
  const minutes = Math.max(
    1,
    requestsPerMinute === null ? 0 : Math.floor((used.requests + ahead.requests) / requestsPerMinute),
    tokensPerMinute === null ? 0 : Math.ceil((used.tokens + ahead.tokens) / tokensPerMinute) - 1,
  );
  return nowMs + minutes * (MINUTE_MS + SLICE_MS) + SLICE_MS;
}

/** Corrects what a call took in the slice that began at `startMs` by what it has used. */
export function correct(
  before: readonly Slice[],
  { startMs, moreTokens }: { startMs: number; moreTokens: number },
  nowMs: number,
): Slice[] {
  const taken = counted(before, nowMs);
  const slice = taken.find(([start]) => start === startMs);
  if (slice) slice[2] = Math.max(0, slice[2] + moreTokens);
  // The call took longer than a minute.
  else if (moreTokens > 0) add(taken, nowMs, 0, moreTokens);
  return taken;
}

export function tokensOfUsage({ inputTokens, outputTokens }: ReportedUsage): number {
  return inputTokens + outputTokens;
}

function add(taken: Slice[], nowMs: number, requests: number, tokens: number): void {
  const startMs = sliceAt(nowMs);
  const slice = taken.find(([start]) => start === startMs);
  if (!slice) {
    taken.push([startMs, requests, tokens]);
    return;
  }
  slice[1] += requests;
  slice[2] += tokens;
}

function sumOf(taken: readonly Slice[]): { requests: number; tokens: number } {
  return taken.reduce(
    (sum, [, requests, tokens]) => ({ requests: sum.requests + requests, tokens: sum.tokens + tokens }),
    { requests: 0, tokens: 0 },
  );
}
