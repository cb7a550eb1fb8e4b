// The charset of a text that says nothing about it, as Excel and other programs of Windows write them: the one in which the text is the
// likeliest. Each candidate has a model of its characters, far too coarse for a language and good enough to tell charsets from each other:
// bytes that are common letters in one are rare letters, symbols and mixed scripts in another.
//
// Libraries that guess charsets need some hundred bytes of prose. A table of a few lines, most of it ASCII, is what people
// upload: for "name;city / Zoë;Köln", chardet 2.2 prefers Baltic.

/** An ASCII character costs the same everywhere. It counts because a charset of two bytes takes some as its second byte. */
const ASCII = -3;
const OTHER_LETTER = Math.log(1e-4);
const OTHER_SYMBOL = Math.log(1e-5);
/** The most frequent first, as in the alphabets. */
const SYMBOLS = '€£–’„“”…°²§«»·µ±®©™•—‘‚³½¼×¿¡№';
/** The least for each byte that is not ASCII: noise has less in every charset, and is no text. */
const LEAST = -6.4;

/** A charset that is rare needs more characters to be likelier than a common one. */
type Rarity = 0 | 3 | 4 | 5 | 8;

/** The letters beyond ASCII of each language that is written in it, the most frequent first. */
type OfLetters = readonly [charset: string, rarity: Rarity, ...languages: string[]];
const western = [
  'äüöß',
  'éèàêçâîôùûïëœüæÿ',
  'óáéíñúü',
  'ãáçéóíõêúâàôü',
  'àèòùéìíîóú',
  'äöåéšžü',
  'åøæéóôòü',
  'éëïèóöüáê',
];
const russian = 'оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё';
const ofLetters: readonly OfLetters[] = [
  ['windows-1252', 0, ...western, 'ðáíþóæöéúý'],
  ['windows-1250', 3, 'łąęóżśćźń', 'áíéěřýžčšůúňťóď', 'áíéčýšžúľťňôäóĺŕď', 'áéíóöüőúű', 'čšžćđ', 'ăâîţş'],
  ['windows-1251', 0, russian, 'оаниветрслкудпмязьгбчхйїцєжшюфіщґ'],
  ['windows-1253', 3, 'ατοιεσνρυκπμςλήηωάόίδέγχθύφβώξζψϊ'],
  ['windows-1254', 0, 'ıüşçğöİâîû'],
  ['windows-1255', 3, 'יוהלאמרתשבםנדעחקפכטסזגןצךףץ'],
  ['windows-1256', 3, 'اليمونرتبةعدسفهكقحجأشطصخضىذزءئغإظآثؤپچگک'],
  ['windows-1257', 4, 'ėšųžąįūčę', 'āīšēņūļčžķģ', 'äõüöšž'],
  ['windows-874', 5, 'านรกอเงม่ยลวดทส้ตะปบิ์คหัแจพชขใี็ไโุูึืผถซธฐศษญณภ'],
  ['koi8-r', 5, russian],
  ['ibm866', 8, russian],
  ['macintosh', 8, ...western],
];

/** By the first byte of a character: how much of a text is in a range, and how many characters the range has. */
type Range = readonly [first: number, last: number, share: number, size: number];
/** Characters of two bytes. In Shift JIS, half-width katakana have one. */
type OfPairs = readonly [charset: string, rarity: Rarity, ...ranges: Range[]];
const isHalfWidth = (charset: string, byte: number) => charset === 'shift_jis' && byte >= 0xa0 && byte < 0xe0;
const ofPairs: readonly OfPairs[] = [
  [
    'shift_jis',
    0,
    [0x81, 0x81, 0.08, 150],
    [0x82, 0x82, 0.3, 145],
    [0x83, 0x83, 0.25, 90],
    [0x88, 0x97, 0.33, 2965],
    [0x98, 0x9f, 0.005, 1400],
    [0xa0, 0xdf, 0.12, 63],
    [0xe0, 0xea, 0.005, 2000],
  ],
  // As banks exchange it.
  ['shift_jis', 8, [0xa0, 0xdf, 0.9, 63]],
  [
    'euc-jp',
    0,
    [0xa1, 0xa1, 0.08, 94],
    [0xa3, 0xa3, 0.03, 62],
    [0xa4, 0xa4, 0.3, 83],
    [0xa5, 0xa5, 0.25, 86],
    [0xb0, 0xcf, 0.33, 2965],
    [0xd0, 0xf4, 0.01, 3390],
  ],
  ['gb18030', 0, [0xa1, 0xa1, 0.06, 94], [0xa3, 0xa3, 0.06, 94], [0xb0, 0xd7, 0.86, 3755], [0xd8, 0xf7, 0.015, 3008]],
  ['big5', 0, [0xa1, 0xa2, 0.08, 300], [0xa4, 0xc6, 0.9, 5401], [0xc9, 0xf9, 0.015, 7652]],
  ['euc-kr', 0, [0xa1, 0xa1, 0.02, 94], [0xb0, 0xc8, 0.96, 2350], [0xca, 0xfd, 0.005, 4888]],
];
const OTHER_PAIR = Math.log(1e-3 / 20_000);

/** `bytes`: some kilobytes, from the byte before the first that is not ASCII. Undefined if they are not text in any charset that is known here. */
export function guessCharset(bytes: Uint8Array): string | undefined {
  const scores: [charset: string, score: number][] = [];
  for (const [charset, rarity, ...ranges] of ofPairs) {
    if (decoded(bytes, charset) !== undefined) scores.push([charset, scoreOfPairs(bytes, charset, ranges) - rarity]);
  }
  for (const [charset, rarity, ...languages] of ofLetters) {
    const text = decoded(bytes, charset);
    if (text === undefined) continue;
    scores.push([charset, Math.max(...languages.map((letters) => scoreOfText(text, letters))) - rarity]);
  }
  const [best] = scores.toSorted(([, a], [, b]) => b - a);
  const ascii = bytes.filter((byte) => byte < 0x80).length;
  return best && best[1] - ascii * ASCII >= LEAST * (bytes.length - ascii) ? best[0] : undefined;
}

/** Undefined if some of the bytes are not in the charset. The last character may be cut. */
function decoded(bytes: Uint8Array, charset: string): string | undefined {
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes, { stream: true });
  } catch {
    return undefined;
  }
}

function scoreOfText(text: string, letters: string): number {
  const weights = weightsOf(letters);
  let score = 0;
  let before = '';
  for (const char of text) {
    score += char < '\x80' ? ASCII : (weights.get(char) ?? otherwise(char));
    score += scoreOfNeighbours(before, char);
    before = char;
  }
  return score;
}

/** Zipf's law for symbols and letters. */
function weightsOf(letters: string): Map<string, number> {
  const known = knownWeights.get(letters);
  if (known) return known;
  const weights = new Map(zipf(SYMBOLS, 0.2));
  for (const [letter, weight] of zipf(letters, 0.8)) {
    weights.set(letter.toUpperCase(), weight);
    weights.set(letter, weight);
  }
  knownWeights.set(letters, weights);
  return weights;
}

function zipf(chars: string, share: number): [char: string, score: number][] {
  const total = [...chars].reduce((sum, _, rank) => sum + 1 / (rank + 2), 0);
  return [...chars].map((char, rank) => [char, Math.log(share / (rank + 2) / total)]);
}
const knownWeights = new Map<string, Map<string, number>>();

function otherwise(char: string): number {
  if (/\p{C}/u.test(char)) return -20;
  return /\p{L}/u.test(char) ? OTHER_LETTER : OTHER_SYMBOL;
}

function scoreOfNeighbours(before: string, char: string): number {
  if (before < '\x80' && char < '\x80') return 0;
  const [a, b] = [kindOf(before), kindOf(char)];
  const capital = b?.isCapital && !a?.isCapital ? -1 : 0;
  if (USUAL.test(before + char)) return 4;
  if (!a && !b) return 0;
  if (!a || !b) {
    const beside = a ? char : before;
    // Few symbols are written next to a letter or a digit without a space.
    const isUnusual = /[^\0-\x7f’”“»…°²³™®]/.test(beside) || (/\d/.test(beside) && (a ? before : char) >= '\x80');
    return capital - (isUnusual ? 1 : 0);
  }
  if (a.isLatin !== b.isLatin) return -5;
  if (a.isSmall && b.isCapital) return -4;
  // Few letters of a Latin text are not ASCII.
  return capital - (a.isLatin && before >= '\x80' && char >= '\x80' ? 2 : 0);
}

/** A symbol where it is written: an apostrophe after a letter, a quotation mark before a word, a unit after a number. */
const USUAL = /^(\p{L}’|[\s(;,]?[“„‘‚«¡¿]|[\p{L}\d.,!?][”“’‘»…™®]|\s[–—•©§±]|[\d\s][€°²³½×]|[£±§]\d?|\p{L}[²³])$/u;

function kindOf(char: string): { isLatin: boolean; isSmall: boolean; isCapital: boolean } | undefined {
  if (!/[\p{L}\p{M}]/u.test(char)) return undefined;
  return { isLatin: /\p{Script=Latin}/u.test(char), isSmall: /\p{Ll}/u.test(char), isCapital: /\p{Lu}/u.test(char) };
}

function scoreOfPairs(bytes: Uint8Array, charset: string, ranges: readonly Range[]): number {
  let score = 0;
  /** What the byte before belongs to. */
  let before: 'letter' | 'pair' | undefined;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    const kind = byte >= 0x80 ? 'pair' : /[A-Za-z]/.test(String.fromCharCode(byte)) ? 'letter' : undefined;
    if (kind !== before && kind && before) score -= 1.5;
    before = kind;
    if (byte < 0x80) {
      score += ASCII;
      continue;
    }
    const isOther = isHalfWidth(charset, byte)
      ? false
      : bytes[at + 1]! < 0xa1 && charset !== 'shift_jis' && charset !== 'big5';
    const range = isOther ? undefined : ranges.find(([first, last]) => byte >= first && byte <= last);
    score += range ? Math.log(range[2] / range[3]) : OTHER_PAIR;
    if (!isHalfWidth(charset, byte)) at += 1;
  }
  return score;
}
