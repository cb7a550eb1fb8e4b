// Splits a content into pieces of one size, as it arrives.

export interface Piece {
  readonly bytes: Uint8Array;
  readonly isLast: boolean;
}

const FIRST_BYTES = 64 * 1024;

/**
 * The content in pieces; the last may be smaller. A piece is valid until the next is requested. It is copied as it arrives: chunks that
 * were kept instead could be one byte each, with a hundred bytes around it.
 */
export async function* piecesOf(content: AsyncIterable<Uint8Array>, pieceBytes: number): AsyncGenerator<Piece> {
  let piece = Buffer.allocUnsafeSlow(FIRST_BYTES);
  let filled = 0;
  for await (let rest of content) {
    while (rest.length > 0) {
      if (filled === pieceBytes) {
        yield { bytes: piece.subarray(0, filled), isLast: false };
        filled = 0;
      }
      if (filled === piece.length) {
        const larger = Buffer.allocUnsafeSlow(Math.min(filled * 2, pieceBytes));
        larger.set(piece);
        piece = larger;
      }
      const part = rest.subarray(0, piece.length - filled);
      piece.set(part, filled);
      filled += part.length;
      rest = rest.subarray(part.length);
    }
  }
  if (filled > 0) yield { bytes: piece.subarray(0, filled), isLast: true };
}
