// Saves what the API streams as a file on the person's computer.

// The browser keeps large Blobs on disk; only the piece being collected is in memory.
const PIECE_BYTES = 4 * 1024 * 1024;

export async function blobOf(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  type: string,
  signal: AbortSignal,
  onBytes: (bytes: number) => void,
): Promise<Blob> {
  const reader = stream.getReader();
  const whole: Blob[] = [];
  let piece: Uint8Array<ArrayBuffer>[] = [];
  let inPiece = 0;
  let bytes = 0;
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    piece.push(next.value);
    inPiece += next.value.length;
    bytes += next.value.length;
    if (inPiece < PIECE_BYTES) continue;
    whole.push(new Blob(piece));
    piece = [];
    inPiece = 0;
    onBytes(bytes);
  }
  signal.throwIfAborted();
  return new Blob([...whole, ...piece], { type });
}

export function save(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // The browser has started to read it by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
