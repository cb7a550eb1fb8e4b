import { PlainText } from '../../ui/text.tsx';
import type { Definition } from './definition.ts';
import { type DiffLine, diffDefinitions } from './diff.ts';

// The number of unchanged lines shown around a change.
const CONTEXT = 3;

/** The changes between two definitions. Signs, elements and colours mark what was removed and added. */
export function DefinitionDiff({ before, after }: { before: Definition; after: Definition }) {
  const { instructions, rest } = diffDefinitions(before, after);
  const parts = [
    { title: 'Instructions', lines: instructions },
    { title: 'Everything else', lines: rest },
  ].filter(({ lines }) => lines.some(({ sign }) => sign !== ' '));
  if (parts.length === 0) return <p className="quiet">No differences.</p>;
  return parts.map(({ title, lines }) => (
    <section className="stack tight" key={title}>
      <h3>
        {title} <span className="quiet small">{counted(lines)}</span>
      </h3>
      <DiffLines title={title} lines={lines} />
    </section>
  ));
}

function counted(lines: readonly DiffLine[]): string {
  const count = (sign: DiffLine['sign']) => lines.filter((line) => line.sign === sign).length;
  return `${count('+')} added, ${count('-')} removed`;
}

function DiffLines({ title, lines }: { title: string; lines: readonly DiffLine[] }) {
  const isNear = (index: number) => lines.slice(Math.max(0, index - CONTEXT), index + CONTEXT + 1).some(isChange);
  const rows: ({ hidden: number } | (DiffLine & { at: number }))[] = [];
  for (const [at, line] of lines.entries()) {
    const last = rows.at(-1);
    if (isNear(at)) rows.push({ ...line, at });
    else if (last && 'hidden' in last) last.hidden += 1;
    else rows.push({ hidden: 1 });
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling element must be reachable by keyboard
    <section className="diff" tabIndex={0} aria-label={`What changed: ${title}`}>
      <pre>
        {rows.map((row, index) => {
          // biome-ignore-start lint/suspicious/noArrayIndexKey: rows never move
          if ('hidden' in row) {
            return (
              <span className="same-lines" key={index}>
                {row.hidden === 1 ? '1 unchanged line' : `${row.hidden} unchanged lines`}
              </span>
            );
          }
          const Line = { '+': 'ins', '-': 'del', ' ': 'span' }[row.sign] as 'ins' | 'del' | 'span';
          return (
            <Line key={index}>
              {row.sign === '-' ? '−' : row.sign} <PlainText text={row.text} />
            </Line>
          );
          // biome-ignore-end lint/suspicious/noArrayIndexKey: rows never move
        })}
      </pre>
    </section>
  );
}

function isChange({ sign }: DiffLine): boolean {
  return sign !== ' ';
}
