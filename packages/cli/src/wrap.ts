// Text that fits the width of the terminal.

const DEFAULT_WIDTH = 100;
// A narrower second column is harder to read than a line that the terminal breaks.
const MIN_TEXT_WIDTH = 30;

/** The terminal's width; of a pipe or a file, one that most screens have. */
function widthOf(stream: { columns?: number }): number {
  return stream.columns || DEFAULT_WIDTH;
}

/** Lines of two columns, indented. The second is wrapped at the width; if there is no room for it, it goes below the first. */
export function wrappedColumns(
  rows: readonly (readonly [string, string])[],
  leftWidth: number,
  width = widthOf(process.stdout),
): string {
  const isBelow = width - leftWidth - 5 < MIN_TEXT_WIDTH;
  const indent = isBelow ? 6 : leftWidth + 5;
  return rows
    .map(([left, right]) => {
      const lines = wrap(right, Math.max(width - indent, MIN_TEXT_WIDTH)).map((line) => ' '.repeat(indent) + line);
      return isBelow
        ? `  ${left}\n${lines.join('\n')}\n`
        : `  ${left.padEnd(leftWidth)}   ${lines.join('\n').trimStart()}\n`;
    })
    .join('');
}

/** Breaks between words. A longer word has a line of its own. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}
