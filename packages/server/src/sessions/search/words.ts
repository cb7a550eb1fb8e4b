// The words of texts in any language, and the searches for them: PostgreSQL gets lists of words and only keeps their index.
//
// Case, width and accents make no difference. In scripts that are written without spaces, every two adjacent characters are a word,
// so a search finds any part of a sentence. Punctuation separates: `refund_order` is two words, and so is `A-1042`.
import { createHash } from 'node:crypto';
import { normalizable } from '../../lib/text.ts';

/** A session has no more words than this; later ones are not found. */
export const MAX_WORDS = 5_000;
// Longer words are cut, in texts and in searches alike.
const MAX_WORD_CHARACTERS = 60;
// The limit of one value; the rest of it is not searched. Some characters become many: there are ligatures of 18 letters.
const MAX_TEXT_CHARACTERS = 200_000;
const MAX_FOLDED_CHARACTERS = 400_000;
// What is folded at once, so that no more is folded than there is room for words.
const PART_CHARACTERS = 8_192;
// A search is short. More words make it no more precise, but each costs a look-up.
const MAX_SEARCHED_WORDS = 16;

// One letter begins too many words.
const MIN_BEGINNING = 2;

const RUNS = /[\p{L}\p{N}\p{M}]+/gu;
const UNSPACED =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\u30fc]/u;
const SCRIPTS =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\u30fc]+|[^\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\u30fc]+/gu;
const ACCENTS = /[\u0300-\u036f]/g;

function fold(text: string): string {
  return normalizable(normalizable(text).normalize('NFKC').toLowerCase())
    .normalize('NFD')
    .replace(ACCENTS, '')
    .normalize('NFC');
}

/** Up to a space, if there is one near the end of a part. */
function* partsOf(text: string): Generator<string> {
  for (let from = 0; from < text.length; ) {
    const space = text.lastIndexOf(' ', from + PART_CHARACTERS);
    const isNear = space > from + PART_CHARACTERS / 2 && text.length > from + PART_CHARACTERS;
    const to = isNear ? space : from + PART_CHARACTERS;
    yield text.slice(from, to);
    from = to;
  }
}

interface Piece {
  text: string;
  /** In a script that is written without spaces. */
  isUnspaced: boolean;
}

function* piecesOf(text: string): Generator<Piece> {
  let left = MAX_FOLDED_CHARACTERS;
  for (const part of partsOf(text.slice(0, MAX_TEXT_CHARACTERS))) {
    const folded = fold(part);
    left -= folded.length;
    if (left < 0) return;
    for (const [run] of folded.matchAll(RUNS)) {
      for (const [piece] of run.matchAll(SCRIPTS)) yield { text: piece, isUnspaced: UNSPACED.test(piece) };
    }
  }
}

function pairsIn(text: string): string[] {
  const characters = [...text];
  return characters.map((character, at) => character + (characters[at + 1] ?? ''));
}

function cut(word: string): string {
  return [...word].slice(0, MAX_WORD_CHARACTERS).join('');
}

/** Adds the words of a text, as long as there is room. */
export function addWords(words: Set<string>, text: string): void {
  for (const piece of piecesOf(text)) {
    for (const word of piece.isUnspaced ? pairsIn(piece.text) : [cut(piece.text)]) {
      if (words.size >= MAX_WORDS) return;
      words.add(word);
    }
  }
}

/** What never changes of a session and is searched together with words, so that the index finds only what has both. */
export interface SearchScope {
  organizationId: string;
  environment?: string | undefined;
  agentId?: string | undefined;
  endUserId?: string | null | undefined;
}

/** As words that no text has. */
export function fixedWords({ organizationId, environment, agentId, endUserId }: SearchScope): string[] {
  return [
    `o:${organizationId}`,
    ...(environment === undefined ? [] : [`e:${environment}`]),
    ...(agentId === undefined ? [] : [`a:${agentId}`]),
    // Ids of end users may be long and contain anything.
    ...(endUserId === undefined || endUserId === null
      ? []
      : [`u:${createHash('sha256').update(endUserId).digest('base64url').slice(0, 22)}`]),
  ];
}

/** The text of a tsquery for all words of `text`; undefined if it has none. The last one may be the beginning of a word. */
export function searchFor(text: string, fixed: SearchScope): string | undefined {
  const pieces = [...piecesOf(text)];
  const terms = pieces.flatMap((piece, at) => {
    const isLast = at === pieces.length - 1;
    if (!piece.isUnspaced) {
      const isBeginning = isLast && piece.text.length >= MIN_BEGINNING && !/[\s\p{P}]$/u.test(text);
      return [`'${cut(piece.text)}'${isBeginning ? ':*' : ''}`];
    }
    const pairs = pairsIn(piece.text);
    // The last character, which may begin any pair, is already in the pair before.
    return pairs.length === 1 ? [`'${pairs[0]}':*`] : pairs.slice(0, -1).map((pair) => `'${pair}'`);
  });
  if (terms.length === 0) return undefined;
  const distinct = [...new Set(terms)];
  const searched = distinct.length > MAX_SEARCHED_WORDS ? distinct.slice(-MAX_SEARCHED_WORDS) : distinct;
  return [...fixedWords(fixed).map((word) => `'${word}'`), ...searched].join(' & ');
}
