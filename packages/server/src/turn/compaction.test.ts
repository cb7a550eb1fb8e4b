// Whatever a transcript is: a call and its result stay together, what a model gets has a bound, and planning ends.
import type { MessagePart } from '@signalbox/contract';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Compaction } from '../session-rows/compactions.ts';
import {
  maxTokensOf,
  modelView,
  type PlacedEntry,
  planCompaction,
  summaryInput,
  withoutReplaced,
} from './compaction.ts';
import { tokensOfAll, tokensOfText } from './context-size.ts';

const ROOM = 2_000;
/** A response can have many calls, and each has an id and a frame that nothing can cut. */
const MAX_CALLS = 3;

/** Any text: ASCII, other scripts, and text of which JSON makes more. */
const text = fc
  .tuple(fc.constantFrom('a', 'word ', 'ж', '漢', '🙂', '"', '\\', '\n'), fc.nat(4_000))
  .map(([piece, count]) => piece.repeat(Math.max(1, Math.floor(count / piece.length))));
const value = fc.oneof(text, fc.array(text, { maxLength: 3 }), fc.record({ a: text }));

interface Step {
  said: string;
  calls: { input: unknown; output: unknown }[];
}
const step: fc.Arbitrary<Step> = fc.record({
  said: text,
  calls: fc.array(fc.record({ input: value, output: value }), { maxLength: MAX_CALLS }),
});
const turns = fc.array(fc.record({ asked: text, steps: fc.array(step, { maxLength: 5 }) }), {
  minLength: 1,
  maxLength: 8,
});

function transcriptOf(given: readonly { asked: string; steps: readonly Step[] }[]): PlacedEntry[] {
  let calls = 0;
  return given.flatMap(({ asked, steps }, index) => {
    const content: { role: PlacedEntry['role']; content: MessagePart[] }[] = [
      { role: 'user', content: [{ type: 'text', text: asked }] },
    ];
    for (const { said, calls: some } of steps) {
      const ids = some.map(() => `call_${String(++calls).padStart(26, '0')}`);
      content.push({
        role: 'assistant',
        content: [
          { type: 'text', text: said },
          ...some.map(({ input }, at) => ({ type: 'tool_call' as const, toolCallId: ids[at]!, tool: 't', input })),
        ],
      });
      if (some.length > 0)
        content.push({
          role: 'tool',
          content: some.map(({ output }, at) => ({ type: 'tool_result' as const, toolCallId: ids[at]!, output })),
        });
    }
    return content.map((entry, position) => ({ ...entry, turn: index + 1, position }));
  });
}

const START = { turn: 0, position: 0 };
const endOf = (entries: readonly PlacedEntry[]) => {
  const { turn, position } = entries.at(-1)!;
  return { turn, position: position + 1 };
};
const idsOf = (entries: readonly { content: readonly MessagePart[] }[], type: 'tool_call' | 'tool_result') =>
  entries.flatMap(({ content }) => content.flatMap((part) => (part.type === type ? part.toolCallId : []))).toSorted();

/** Carries out a plan with summaries of the maximum length. */
function carriedOut(entries: PlacedEntry[], everything: boolean) {
  const parts = planCompaction(entries, { from: START, end: endOf(entries), room: ROOM, everything });
  let compaction: Compaction | null = null;
  for (const { from } of parts) compaction = { from, summary: 's'.repeat(5_000), maxTokens: null, maxTokensOf: null };
  const kept: PlacedEntry[] = compaction ? withoutReplaced(entries, compaction.from) : entries;
  return { parts, compaction, kept, view: modelView(kept, compaction, ROOM) };
}

const property = (check: (entries: PlacedEntry[], everything: boolean) => void) =>
  fc.assert(fc.property(turns.map(transcriptOf), fc.boolean(), check), { numRuns: 100 });

test('a call and its result are never separated', () => {
  property((entries, everything) => {
    const { parts, view } = carriedOut(entries, everything);
    for (const some of [...parts.map((part) => part.entries), view])
      expect(idsOf(some, 'tool_call')).toEqual(idsOf(some, 'tool_result'));
  });
});

test('what a model gets after a compaction fits', () => {
  property((entries, everything) => {
    expect(tokensOfAll(carriedOut(entries, everything).view)).toBeLessThanOrEqual(ROOM);
  });
});

test('each part that a model gets after a compaction is known to be of its message, and the summary of none', () => {
  const user = (turn: number, ...texts: string[]) => ({
    turn,
    position: 0,
    role: 'user' as const,
    content: texts.map((one) => ({ type: 'text' as const, text: one })),
    messageId: `message ${turn}`,
  });
  const compaction = { from: { turn: 3, position: 0 }, summary: 's', maxTokens: null, maxTokensOf: null };
  const [first, second] = modelView([user(1, 'a', 'b'), user(3, 'c'), user(4, 'd')], compaction, ROOM);
  expect(first!.content).toHaveLength(4);
  expect(first!.messageId).toEqual(['message 1', 'message 1', null, 'message 3']);
  expect(second!.messageId).toBe('message 4');
});

test('what a model gets without a compaction fits, if none is possible', () => {
  property((entries) => {
    const { parts, view } = carriedOut(entries, false);
    if (parts.length === 0) expect(tokensOfAll(view)).toBeLessThanOrEqual(ROOM);
  });
});

test('each compaction reads a bounded part, in order, and the next continues where it ended', () => {
  property((entries, everything) => {
    const { parts, compaction } = carriedOut(entries, everything);
    const replaced = parts.flatMap((part) => part.entries);
    expect(replaced).toEqual(entries.slice(0, replaced.length));
    for (const [index, part] of parts.entries()) {
      expect(part.entries.length).toBeGreaterThan(0);
      const next = parts[index + 1]?.entries[0] ?? entries[replaced.length] ?? endOf(entries);
      expect(part.from).toEqual({ turn: next.turn, position: next.position });
      const input = summaryInput(part.entries, 's'.repeat(5_000), ROOM);
      expect(tokensOfText(input)).toBeLessThanOrEqual(0.9 * ROOM);
    }
    if (everything) expect(replaced).toHaveLength(entries.length);
    if (compaction) expect(compaction.from).toEqual(parts.at(-1)!.from);
  });
});

test('a second compaction follows only if something can be gained', () => {
  property((entries, everything) => {
    const { compaction, kept } = carriedOut(entries, everything);
    if (!compaction) return;
    const more = planCompaction(kept, { from: compaction.from, end: endOf(entries), room: ROOM });
    expect(more).toEqual([]);
  });
});

test('the first message, the message of a turn that is compacted while it runs, and the newest step stay', () => {
  property((entries) => {
    const { compaction, view, kept } = carriedOut(entries, false);
    if (!compaction) return;
    const text = JSON.stringify(view[0]);
    const isWithinTurn = compaction.from.position > 0;
    const pinned = entries.filter(
      ({ turn, position }) => position === 0 && (turn === 1 || (isWithinTurn && turn === compaction.from.turn)),
    );
    for (const { content } of pinned)
      expect(text).toContain(
        JSON.stringify([...(content[0] as { text: string }).text].slice(0, 5).join('')).slice(1, -1),
      );
    expect(kept).toContain(entries.at(-1));
  });
});

test('what is cut from a message says so, and the same message is always cut in the same way', () => {
  const long: PlacedEntry = {
    turn: 1,
    position: 0,
    role: 'user',
    content: [{ type: 'text', text: `begin${'a'.repeat(1024 * 1024)}end` }],
  };
  const [once] = modelView([long], null, ROOM);
  const [again] = modelView([long], null, ROOM);
  expect(again).toBe(once);
  const [part] = once!.content;
  expect(part).toMatchObject({ text: expect.stringMatching(/^begina+\n\[… 1048584 bytes: .+ …\]\na+end$/) });
});

test.each([
  ['three quarters of the window', null, null, 128_000, 96_000],
  ['100,000 if the window is not known', null, null, null, 100_000],
  ['what the agent says', 20_000, null, 128_000, 20_000],
  ['what the agent says, if the window is not known', 20_000, null, null, 20_000],
  ['not more than the window has beside a response', 128_000, 30_000, 128_000, 98_000],
  ['nine tenths of the window at most', 1_000_000, null, 128_000, 115_200],
  ['4 MiB at most', null, null, 100_000_000, 1_398_102],
])('a compaction is due at %s', (_title, compactAtTokens, maxOutputTokens, window, tokens) => {
  expect(maxTokensOf({ compactAtTokens, maxOutputTokens }, window)).toBe(tokens);
});
