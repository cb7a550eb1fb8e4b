// What changed between two definitions, line by line.

export interface DifferenceLine {
  /** `@` is the name of a field. */
  mark: '-' | '+' | ' ' | '@';
  text: string;
}

// Longer texts are compared as a whole: the comparison takes time and memory by the product of their lines.
const MAX_LINES = 2_000;

/** The fields that differ, with their lines. Texts are compared as they are read, everything else as JSON. */
export function linesOfDifference(before: object, after: object): DifferenceLine[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.flatMap((name) => {
    const [old, current] = [textOf(before[name as never]), textOf(after[name as never])];
    if (old.join('\n') === current.join('\n')) return [];
    return [{ mark: '@' as const, text: name }, ...compare(old, current)];
  });
}

function textOf(value: unknown): string[] {
  if (value === undefined || value === '') return [];
  return (typeof value === 'string' ? value : JSON.stringify(value, undefined, 2)).split('\n');
}

/** The longest common subsequence of lines stays. */
function compare(before: readonly string[], after: readonly string[]): DifferenceLine[] {
  const isLong = before.length > MAX_LINES || after.length > MAX_LINES;
  const common = isLong ? [] : lengths(before, after);
  const lines: DifferenceLine[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      lines.push({ mark: ' ', text: before[i]! });
      i += 1;
      j += 1;
    } else if (j >= after.length || (i < before.length && (isLong || common[i + 1]![j]! >= common[i]![j + 1]!))) {
      lines.push({ mark: '-', text: before[i]! });
      i += 1;
    } else {
      lines.push({ mark: '+', text: after[j]! });
      j += 1;
    }
  }
  return lines;
}

/** How many lines the ends of both have in common, from each pair of places on. */
function lengths(before: readonly string[], after: readonly string[]): Uint16Array[] {
  const table = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1));
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      table[i]![j] =
        before[i] === after[j] ? table[i + 1]![j + 1]! + 1 : Math.max(table[i + 1]![j]!, table[i]![j + 1]!);
  return table;
}
