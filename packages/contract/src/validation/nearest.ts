// "Did you mean": the known word that a mistyped one is nearest to. It has a subpath of its own, without dependencies, because every
// start of the command line loads it.

/**
 * The nearest known word; undefined if none is near enough to be meant. Case, `_`, `-` and `.` don't count. Near enough is a third of
 * the word's letters, or its beginning; with `maxEdits`, so many letters.
 */
export function nearest(word: string, known: readonly string[], maxEdits?: number): string | undefined {
  const plain = plainText(word);
  if (plain === '') return undefined;
  const isBeginning = (one: string) => maxEdits === undefined && plain.length > 1 && one.startsWith(plain);
  const ranked = known
    .map((one) => ({ one, plain: plainText(one) }))
    .map(({ one, plain: other }) => ({ one, distance: isBeginning(other) ? 0 : editDistance(plain, other) }))
    .filter(({ one, distance }) => distance <= (maxEdits ?? Math.max(1, Math.floor(one.length / 3))))
    .sort((a, b) => a.distance - b.distance);
  return ranked[0]?.one;
}

/** ` Did you mean "cents"?`, to follow a sentence; nothing if no word is near. */
export function didYouMean(word: string, known: readonly string[]): string {
  const near = nearest(word, known);
  return near === undefined ? '' : ` Did you mean ${JSON.stringify(near)}?`;
}

function plainText(word: string): string {
  // Longer words are not compared: the time grows with the product of both lengths.
  return word.slice(0, 100).toLowerCase().replaceAll(/[-_.]/g, '');
}

/** How many letters to add, remove, replace or swap with their neighbour. */
function editDistance(a: string, b: string): number {
  const rows = Array.from({ length: a.length + 1 }, (_, i) => Array.from({ length: b.length + 1 }, (_, j) => i + j));
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      rows[i]![j] = Math.min(rows[i - 1]![j]! + 1, rows[i]![j - 1]! + 1, rows[i - 1]![j - 1]! + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        rows[i]![j] = Math.min(rows[i]![j]!, rows[i - 2]![j - 2]! + 1);
    }
  }
  return rows[a.length]![b.length]!;
}
