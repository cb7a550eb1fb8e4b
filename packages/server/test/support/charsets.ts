// Texts in the charsets that `TextDecoder` knows, for which there is no encoder.

const encoders = new Map<string, Map<string, Buffer>>();

/** Every character by its bytes: one, or two whose first is not ASCII. */
function encoderOf(charset: string): Map<string, Buffer> {
  const known = encoders.get(charset);
  if (known) return known;
  const decoder = new TextDecoder(charset, { fatal: true });
  const encoder = new Map<string, Buffer>();
  const add = (...bytes: number[]) => {
    try {
      const char = decoder.decode(Uint8Array.from(bytes));
      if ([...char].length === 1 && !encoder.has(char)) encoder.set(char, Buffer.from(bytes));
    } catch {
      // There is no such character.
    }
  };
  for (let byte = 0; byte < 256; byte++) add(byte);
  if (!/^(windows|koi8|ibm|mac|iso)/.test(charset)) {
    for (let lead = 0x81; lead < 0xff; lead++) for (let trail = 0x40; trail < 0xff; trail++) add(lead, trail);
  }
  encoders.set(charset, encoder);
  return encoder;
}

/** Throws for a character that is not in the charset. */
export function encoded(text: string, charset: string): Buffer {
  if (charset === 'utf-8') return Buffer.from(text);
  if (charset.startsWith('utf-16')) {
    const bytes = Buffer.from(text, 'utf16le');
    return charset === 'utf-16be' ? bytes.swap16() : bytes;
  }
  const encoder = encoderOf(charset);
  return Buffer.concat(
    [...text].map((char) => {
      const bytes = encoder.get(char);
      if (!bytes) throw new Error(`${charset} has no ${char}`);
      return bytes;
    }),
  );
}
