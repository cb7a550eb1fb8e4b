// Sends the inserts of several transactions into one table as one statement.
//
// A statement costs PostgreSQL and the service some 40 µs, whatever it does: a message each way, a look-up of its plan, locks, a
// snapshot, the start of its executor. One that inserts the rows of eight sessions pays that once.
import type { Statement } from './pipeline.ts';

/** `insert into … values`, up to its row, and the row. */
interface PlainInsert {
  readonly head: string;
  readonly row: string;
}

// Each number of rows is a statement of its own, which every connection prepares.
export const MAX_ROWS = 8;
const MAX_TEXTS = 1_000;
// One row, without a clause after it.
const PLAIN = /^(\s*insert into \w+ \([^()]*\)\s*values )(\([^()]*\))\s*$/;

export interface InsertMerger {
  /** Whether the statement can be merged with others of the same text. */
  isPlain(statement: Statement): boolean;
  /** Up to `MAX_ROWS` plain inserts of the same text as one. */
  merge(inserts: readonly Statement[]): Statement;
}

/** `nameOf`: the name under which a text is prepared. */
export function createInsertMerger(nameOf: (text: string) => string | undefined): InsertMerger {
  const known = new Map<string, PlainInsert | undefined>();
  const merged = new Map<string, string>();

  function parse(text: string): PlainInsert | undefined {
    if (!known.has(text)) {
      if (known.size >= MAX_TEXTS) known.clear();
      const [, head, row] = PLAIN.exec(text) ?? [];
      known.set(text, head !== undefined && row !== undefined ? { head, row } : undefined);
    }
    return known.get(text);
  }

  function textOf({ text, values }: Statement, rows: number): string {
    const key = `${rows} ${text}`;
    let found = merged.get(key);
    if (found === undefined) {
      const { head, row } = parse(text)!;
      const numbered = Array.from({ length: rows }, (_, at) =>
        row.replaceAll(/\$(\d+)/g, (_, number) => `$${Number(number) + at * values.length}`),
      );
      found = head + numbered.join(', ');
      if (merged.size >= MAX_TEXTS) merged.clear();
      merged.set(key, found);
    }
    return found;
  }

  return {
    isPlain: ({ text }) => parse(text) !== undefined,
    merge(inserts) {
      const [first] = inserts;
      if (!first || inserts.length === 1) return first!;
      const text = textOf(first, inserts.length);
      return { text, values: inserts.flatMap(({ values }) => values), name: nameOf(text) };
    },
  };
}
