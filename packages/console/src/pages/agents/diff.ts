// Compares texts line by line, by their longest common subsequence.
import { type Definition, sorted, whole } from './definition.ts';

export interface DiffLine {
  sign: '+' | '-' | ' ';
  text: string;
}

// For more (2,000 by 2,000 lines) the table would take too much memory, and the whole text is shown as replaced.
const MAX_CELLS = 4_000_000;

export function diffLines(before: readonly string[], after: readonly string[]): DiffLine[] {
  const most = Math.min(before.length, after.length);
  let head = 0;
  while (head < most && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < most - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  const as = (sign: DiffLine['sign'], lines: readonly string[]) => lines.map((text): DiffLine => ({ sign, text }));
  return [
    ...as(' ', before.slice(0, head)),
    ...middle(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ...as(' ', before.slice(before.length - tail)),
  ];
}

function middle(before: readonly string[], after: readonly string[]): DiffLine[] {
  const lines: DiffLine[] = [];
  const width = after.length + 1;
  // common[i * width + j]: how many lines before[i…] and after[j…] have in common.
  const isTooLong = (before.length + 1) * width > MAX_CELLS;
  const common = new Uint32Array(isTooLong ? 0 : (before.length + 1) * width);
  if (!isTooLong) {
    for (let i = before.length - 1; i >= 0; i -= 1) {
      for (let j = after.length - 1; j >= 0; j -= 1) {
        common[i * width + j] =
          before[i] === after[j]
            ? common[(i + 1) * width + j + 1]! + 1
            : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
      }
    }
  }
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    const [one, other] = [before[i], after[j]];
    if (!isTooLong && one !== undefined && one === other) {
      lines.push({ sign: ' ', text: one });
      i += 1;
      j += 1;
    } else if (
      one !== undefined &&
      (other === undefined || isTooLong || common[(i + 1) * width + j]! >= common[i * width + j + 1]!)
    ) {
      lines.push({ sign: '-', text: one });
      i += 1;
    } else {
      lines.push({ sign: '+', text: other! });
      j += 1;
    }
  }
  return lines;
}

/** Instructions are compared line by line, apart from the JSON, in which they would be one line. */
export function diffDefinitions(before: Definition, after: Definition): { instructions: DiffLine[]; rest: DiffLine[] } {
  const [one, other] = [before, after].map((definition) => {
    const { instructions, ...rest } = whole(definition);
    return { text: String(instructions).split('\n'), json: JSON.stringify(sorted(rest), null, 2).split('\n') };
  }) as [{ text: string[]; json: string[] }, { text: string[]; json: string[] }];
  return { instructions: diffLines(one.text, other.text), rest: diffLines(one.json, other.json) };
}
