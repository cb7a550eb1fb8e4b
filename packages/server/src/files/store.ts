// Where the bytes of files are. A store knows nothing about a file but its key: who may read it, and whether it exists, is in the table
// `files`.

export interface FileKey {
  readonly organizationId: string;
  readonly fileId: string;
}

/** A range of a content: the first byte, and the byte after the last. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

export interface FileStore {
  /** Stored with each file, so that a file is found where it was written. */
  readonly name: string;
  /** How much of a content `write` has in memory while it arrives; and as much again while it stores that. */
  readonly pieceBytes: number;
  /**
   * Stores the bytes as they arrive. When it resolves, they are as durable as a commit that follows. If it rejects,
   * a part may be stored; `remove` deletes it.
   */
  write(file: FileKey, content: AsyncIterable<Uint8Array>): Promise<void>;
  /** Throws if the bytes are not there (any more). Ends early when `signal` is aborted. */
  read(file: FileKey, range: ByteRange, signal?: AbortSignal): AsyncGenerator<Uint8Array>;
  /** Deletes whatever is stored of it. */
  remove(file: FileKey): Promise<void>;
}
