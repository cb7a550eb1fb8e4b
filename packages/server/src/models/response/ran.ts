// What a provider ran itself for a response, such as web searches, and what its text cites. It is read from the provider's events, for
// the journal and the transcript. What the provider needs back is kept apart, as its package reads it (prompt/provider-data.ts).
import type { Source } from '@signalbox/contract';
import type { Ran, RanCall } from '../../session-rows/ran.ts';
import type { Redact } from '../../tools/tool/redact.ts';
import { shownJson, shownText } from '../../tools/tool/result.ts';

export interface RanCollector {
  /** A call begins. The first one with an id counts. */
  begin(id: string, tool: string, input: unknown): void;
  input(id: string, input: unknown): void;
  /** Also of a call that began in an earlier response. */
  end(id: string, tool: string, result: { output: unknown } | { error: string }): void;
  cites(source: Source): void;
  /** A source that the provider names without a place in the text. */
  reads(source: Source): void;
  ran(): Ran;
}

/** A provider may return the result with its next response, or not at all. */
const NO_RESULT = 'The provider’s response has no result of this call.';

export function createRanCollector(): RanCollector {
  const calls = new Map<string, { tool: string; input: unknown; result?: { output: unknown } | { error: string } }>();
  const cited = new Map<string, Source>();
  const read = new Map<string, Source>();
  return {
    begin(id, tool, input) {
      if (!calls.has(id)) calls.set(id, { tool, input });
    },
    input(id, input) {
      const call = calls.get(id);
      if (call) call.input = input;
    },
    end(id, tool, result) {
      const call = calls.get(id) ?? { tool, input: {} };
      calls.set(id, { ...call, result });
    },
    cites: (source) => addOnce(cited, source),
    reads: (source) => addOnce(read, source),
    ran: () => ({
      calls: [...calls.values()].map(({ tool, input, result = { error: NO_RESULT } }) => ({ tool, input, ...result })),
      sources: [...(cited.size > 0 ? cited : read).values()],
    }),
  };
}

export function joinedRan(all: readonly Ran[]): Ran {
  const sources = new Map<string, Source>();
  for (const source of all.flatMap((one) => one.sources)) addOnce(sources, source);
  return { calls: all.flatMap(({ calls }) => calls), sources: [...sources.values()] };
}

/** A page is cited once for each of its passages, and some servers repeat all of them with each piece of the text. */
function addOnce(known: Map<string, Source>, source: Source): void {
  const key = source.url ?? source.title ?? '';
  if (key !== '' && !known.has(key)) known.set(key, source);
}

/** A source with what is known of it. An address that no page should link to is its title. */
export function sourceOf(
  url: string | null | undefined,
  title?: string | null | undefined,
  citedText?: string | null | undefined,
): Source {
  const isLink = typeof url === 'string' && /^https?:$/.test(URL.parse(url)?.protocol ?? '');
  const name = title?.trim() ? title : isLink ? undefined : (url ?? undefined);
  return {
    ...(isLink && { url }),
    ...(name !== undefined && { title: name }),
    ...(citedText?.trim() && { citedText }),
  };
}

/** A value of a provider without what it has encrypted for itself. */
export function withoutSealed(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutSealed);
  const open = Object.entries(value).filter(([name]) => !/^encrypted/i.test(name));
  return Object.fromEntries(open.map(([name, inner]) => [name, withoutSealed(inner)]));
}

/** What a response shows of its provider's calls, in total. Their results can be as long as pages. */
const SHOWN_MAX_CHARACTERS = 512 * 1024;
const SHOWN_MAX = 100;
const TITLE_MAX_CHARACTERS = 1_000;
const URL_MAX_CHARACTERS = 8_192;
const WORDS_MAX_CHARACTERS = 10_000;

/** As it may be shown and stored. */
export function shownRan({ calls, sources }: Ran, redact: Redact): Ran {
  let left = SHOWN_MAX_CHARACTERS;
  return {
    calls: calls.slice(0, SHOWN_MAX).map(({ tool, input, output, error }): RanCall => {
      const fitting = (value: unknown, instead: unknown): unknown => {
        const shown = shownJson(value ?? null, redact);
        const { length } = JSON.stringify(shown);
        if (length > left) return instead;
        left -= length;
        return shown;
      };
      const asked = { tool: shownText(tool, redact), input: fitting(input, {}) };
      if (error !== undefined) return { ...asked, error: shownText(error, redact).slice(0, WORDS_MAX_CHARACTERS) };
      return {
        ...asked,
        output: fitting(output, `(The result is longer than what is kept: ${SHOWN_MAX_CHARACTERS} characters.)`),
      };
    }),
    sources: sources.slice(0, SHOWN_MAX).map(({ url, title, citedText }) => ({
      ...(url !== undefined && url.length <= URL_MAX_CHARACTERS && { url: shownText(url, redact) }),
      ...(title !== undefined && { title: cut(title, TITLE_MAX_CHARACTERS) }),
      ...(citedText !== undefined && { citedText: cut(citedText, WORDS_MAX_CHARACTERS) }),
    })),
  };

  function cut(text: string, maxCharacters: number): string {
    return shownText(text, redact).slice(0, maxCharacters).toWellFormed();
  }
}
