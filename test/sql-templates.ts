// The sql`…` templates of the sources, found by parsing the text, to be matched with the statements that ran.
import { globSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';

export interface SqlTemplate {
  /** `file:line`. */
  place: string;
  /** The text between the interpolations. */
  pieces: string[];
  /** Whether it is a complete statement by its beginning, and not a part of one. */
  isStatement: boolean;
}

const STATEMENT = /^[\s(]*(select|insert|update|delete|with|lock|set|listen|show|merge|truncate)\b/i;

export function sqlTemplates(root: string): SqlTemplate[] {
  return globSync('packages/server/src/**/*.ts', { cwd: root })
    .filter((file) => !file.endsWith('.test.ts'))
    .toSorted()
    .flatMap((file) => templatesIn(readFileSync(`${root}/${file}`, 'utf8'), relative('', file)));
}

export function templatesIn(text: string, file: string): SqlTemplate[] {
  return [...text.matchAll(/(?<![\w.])sql`/g)].map(({ index }) => {
    const pieces = readTemplate(text, index + 'sql`'.length).pieces;
    const line = text.slice(0, index).split('\n').length;
    return { place: `${file}:${line}`, pieces, isStatement: STATEMENT.test(pieces[0]!) };
  });
}

/** From after the opening backtick to after the closing one. */
function readTemplate(text: string, start: number): { pieces: string[]; end: number } {
  const pieces: string[] = [];
  let piece = '';
  for (let at = start; ; ) {
    if (text[at] === '`') return { pieces: [...pieces, piece], end: at + 1 };
    if (text[at] === undefined) throw new Error('A template that does not end');
    if (text.startsWith('${', at)) {
      pieces.push(piece);
      piece = '';
      at = endOfExpression(text, at + 2);
    } else {
      if (text[at] === '\\') at += 1;
      piece += text[at];
      at += 1;
    }
  }
}

/** Returns the position after the brace that closes an interpolation; its strings and templates may contain braces. */
function endOfExpression(text: string, start: number): number {
  let depth = 1;
  for (let at = start; ; ) {
    const character = text[at];
    if (character === undefined) throw new Error('An interpolation that does not end');
    if (character === '`') {
      at = readTemplate(text, at + 1).end;
      continue;
    }
    if (character === "'" || character === '"') {
      at += 1;
      while (text[at] !== character) at += text[at] === '\\' ? 2 : 1;
    }
    if (character === '{') depth += 1;
    if (character === '}') depth -= 1;
    at += 1;
    if (depth === 0) return at;
  }
}

// Shorter ones are the beginning of too many unrelated statements.
const LEAST_BEGINNING = 40;

/** Whether the statement can have come from the template: it begins with the template, or contains it if it is only a part. */
export function cameFrom(statement: string, { pieces, isStatement }: SqlTemplate): boolean {
  // A template that is composed with another begins with the white space of both.
  const [first = '', ...rest] = pieces.with(0, pieces[0]!.trimStart());
  const text = statement.trimStart();
  if (isStatement && pieces.join('').length < LEAST_BEGINNING) {
    if (rest.length === 0) return text === first;
    if (!text.endsWith(rest.at(-1)!)) return false;
  }
  let at = 0;
  for (const [index, piece] of [first, ...rest].entries()) {
    const found = text.indexOf(piece, at);
    if (found < 0 || (index === 0 && isStatement && found !== 0)) return false;
    at = found + piece.length;
  }
  return true;
}

/** Whether the statement contains the template as a subquery: in its own parentheses, in others, or as one side of a `union`. */
export function holds(statement: string, { pieces, isStatement }: SqlTemplate): boolean {
  if (!isStatement) return false;
  const [first = '', ...rest] = pieces.with(0, pieces[0]!.trim());
  for (let begin = statement.indexOf(first, 1); begin > 0; begin = statement.indexOf(first, begin + 1)) {
    const before = statement.slice(0, begin).trimEnd();
    if (!first.startsWith('(') && !/(\(|\bunion all)$/.test(before)) continue;
    let at = begin + first.length;
    const isWhole = rest.every((piece) => {
      const found = statement.indexOf(piece.trimEnd(), at);
      at = found + piece.trimEnd().length;
      return found >= 0;
    });
    if (isWhole) return true;
  }
  return false;
}
