// How well a text matches what was typed: all words of it, in any order, each as a part of the text or as letters in their order.
//
// A match at the beginning of the text counts most, then at the beginning of a word, then letters next to each other.

/**
 * Undefined if it does not match; higher is better. An empty query matches everything the same. `isWhole`: only whole words of the query
 * count, for long texts, in which letters in their order are found by chance.
 */
export function matchOf(query: string, text: string, isWhole = false): number | undefined {
  const hay = text.toLowerCase();
  let total = 0;
  for (const word of query.toLowerCase().split(/\s+/).filter(Boolean)) {
    const score = isWhole && !hay.includes(word) ? undefined : wordScore(word, hay);
    if (score === undefined) return undefined;
    total += score;
  }
  // The shorter of two that match equally well is more of what was meant.
  return total - hay.length / 1000;
}

function wordScore(word: string, hay: string): number | undefined {
  const at = hay.indexOf(word);
  if (at === 0) return 100 + word.length;
  if (at > 0) return (hasWordAt(hay, word) ? 80 : 50) + word.length;
  return lettersScore(word, hay);
}

function hasWordAt(hay: string, word: string): boolean {
  for (let at = hay.indexOf(word); at !== -1; at = hay.indexOf(word, at + 1)) if (isStart(hay, at)) return true;
  return false;
}

/** The letters in their order, the first of them at the start of a word: `nses` for “new session”. */
function lettersScore(word: string, hay: string): number | undefined {
  let at = -1;
  let score = 0;
  for (const [index, letter] of [...word].entries()) {
    let next = hay.indexOf(letter, at + 1);
    if (index === 0) while (next !== -1 && !isStart(hay, next)) next = hay.indexOf(letter, next + 1);
    if (next === -1) return undefined;
    score += isStart(hay, next) ? 5 : next === at + 1 ? 3 : -1;
    at = next;
  }
  // Letters that are far apart match nearly everything.
  return score > word.length ? score : undefined;
}

function isStart(hay: string, at: number): boolean {
  return at === 0 || !/[\p{L}\p{N}]/u.test(hay[at - 1]!);
}
