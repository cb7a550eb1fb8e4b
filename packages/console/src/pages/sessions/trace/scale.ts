// The time axis of a trace. Time in which nothing works, between turns or while a person decides, is drawn short and marked, so that
// a session of three days shows its seconds of work.

export interface Span {
  readonly from: number;
  readonly until: number;
}

/** A stretch of time that is drawn shorter than it was; `at` and `end` are shares of the width. */
export interface Break {
  readonly at: number;
  readonly end: number;
  readonly ms: number;
}

export interface Tick {
  readonly at: number;
  /** Since the stretch began in which it is. */
  readonly ms: number;
}

export interface Scale {
  /** The share of the width, from 0 to 1. */
  at(time: number): number;
  readonly breaks: readonly Break[];
  readonly ticks: readonly Tick[];
}

interface Piece extends Span {
  readonly isShort: boolean;
  readonly at: number;
  readonly end: number;
}

/** How much of the time in which something works a shortened stretch takes. */
const SHORT_SHARE = 0.15;
/** Idle time is drawn in full up to this share of it: less is worth no gap in the axis. */
const IDLE_SHARE = 0.5;
/** All that is shortened takes this share at most. */
const SHORTENED_SHARE = 0.4;
const TICKS = 6;

/** `busy`: when something works, in any order. `labelShare`: the share of the width that the text of a tick takes. */
export function createScale(whole: Span, busy: readonly Span[], labelShare = 0.09): Scale {
  const pieces = place(whole, merged(whole, busy));
  const at = (time: number) => {
    const clamped = Math.min(Math.max(time, whole.from), whole.until);
    const piece = pieces.find(({ until }) => clamped <= until) ?? pieces.at(-1)!;
    const length = piece.until - piece.from;
    const share = length === 0 ? 0 : (clamped - piece.from) / length;
    return piece.at + share * (piece.end - piece.at);
  };
  const breaks = pieces
    .filter(({ isShort }) => isShort)
    .map(({ at, end, from, until }) => ({ at, end, ms: until - from }));
  return { at, breaks, ticks: ticksOf(pieces, labelShare) };
}

/** Without overlaps, in order. */
function merged(whole: Span, busy: readonly Span[]): Span[] {
  const sorted = busy
    .map(({ from, until }) => ({ from: Math.max(from, whole.from), until: Math.min(until, whole.until) }))
    .filter(({ from, until }) => until > from)
    .sort((a, b) => a.from - b.from);
  const found: { from: number; until: number }[] = [];
  for (const span of sorted) {
    const last = found.at(-1);
    if (last && span.from <= last.until) last.until = Math.max(last.until, span.until);
    else found.push({ ...span });
  }
  return found;
}

function place(whole: Span, busy: readonly Span[]): Piece[] {
  const work = busy.reduce((sum, { from, until }) => sum + until - from, 0);
  const edges = [whole.from, ...busy.flatMap(({ from, until }) => [from, until]), whole.until];
  const gaps: Span[] = [];
  for (let index = 0; index < edges.length; index += 2) gaps.push({ from: edges[index]!, until: edges[index + 1]! });
  const long = work === 0 ? [] : gaps.filter(({ from, until }) => until - from > work * IDLE_SHARE);
  const short = Math.min(work * SHORT_SHARE, (work * SHORTENED_SHARE) / Math.max(1, long.length));

  const stretches: (Span & { isShort: boolean; length: number })[] = [];
  let from = whole.from;
  for (const gap of long) {
    if (gap.from > from) stretches.push({ from, until: gap.from, isShort: false, length: gap.from - from });
    stretches.push({ ...gap, isShort: true, length: short });
    from = gap.until;
  }
  if (whole.until > from || stretches.length === 0)
    stretches.push({ from, until: whole.until, isShort: false, length: Math.max(whole.until - from, 1) });
  const total = stretches.reduce((sum, { length }) => sum + length, 0);
  let at = 0;
  return stretches.map(({ length, ...stretch }) => {
    const begin = at / total;
    at += length;
    return { ...stretch, at: begin, end: at / total };
  });
}

/** Only those whose text has room before the next one or the end of its stretch. */
function ticksOf(pieces: readonly Piece[], labelShare: number): Tick[] {
  const shown = pieces.filter(({ isShort }) => !isShort);
  const work = shown.reduce((sum, { from, until }) => sum + until - from, 0);
  const share = shown.reduce((sum, { at, end }) => sum + end - at, 0);
  const step = niceStep(Math.max(work / TICKS, (work / share) * labelShare));
  const ticks: Tick[] = [];
  for (const { from, until, at, end } of shown) {
    for (let ms = 0; ms === 0 || ms < until - from; ms += step) {
      const place = at + (until === from ? 0 : (ms / (until - from)) * (end - at));
      if (place + labelShare <= end) ticks.push({ at: place, ms });
    }
  }
  return ticks;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 4, 8, 12, 24, 48, 24 * 7].map((hours) => hours * HOUR),
];

/** The least of the usual steps that is not less. */
function niceStep(ms: number): number {
  return STEPS.find((step) => step >= ms) ?? Math.ceil(ms / (24 * HOUR)) * 24 * HOUR;
}
