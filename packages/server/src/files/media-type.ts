// The media type of a file, by its bytes. What an upload claims only chooses among kinds of text, which no bytes distinguish.

export interface MediaTypeDetector {
  /** The content in order, in chunks of any size. */
  add(chunk: Uint8Array): void;
  /** Once all of it was added. `claimed`: the `Content-Type` of the upload. */
  detect(claimed: string | undefined): Promise<string>;
}

/** Ample for every signature. The library bounds what it unpacks of an archive, and this bounds it further. */
const HEAD_BYTES = 64 * 1024;

const CLAIMABLE = ['text/plain', 'text/csv', 'text/markdown', 'text/html', 'application/json'];
// A text can begin with the two letters of an image format. These formats are themselves text, or may be.
const MAY_BE_TEXT = /^text\/|^application\/(pdf|rtf|xml|postscript|eps)$/;
const UNKNOWN = 'application/octet-stream';

export function createMediaTypeDetector(): MediaTypeDetector {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  let headBytes = 0;
  let isText = true;

  function read(chunk?: Uint8Array): void {
    try {
      if (chunk?.includes(0)) isText = false;
      else decoder.decode(chunk, { stream: chunk !== undefined });
    } catch {
      isText = false;
    }
  }

  return {
    add(chunk) {
      const missing = chunk.subarray(0, HEAD_BYTES - headBytes);
      head.set(missing, headBytes);
      headBytes += missing.length;
      if (isText) read(chunk);
    },
    async detect(claimed = '') {
      if (isText) read();
      // Loaded with the first file: a start takes longer with it, and most installations have no files.
      const { fileTypeFromBuffer } = await import('file-type');
      // It rejects for content that contradicts its own signature.
      const found = await fileTypeFromBuffer(head.subarray(0, headBytes)).catch(() => undefined);
      if (!isText) return found?.mime ?? UNKNOWN;
      if (found && MAY_BE_TEXT.test(found.mime)) return found.mime;
      const [essence = ''] = claimed.toLowerCase().split(';');
      return CLAIMABLE.find((type) => type === essence.trim()) ?? 'text/plain';
    },
  };
}
