import { PageRequest } from '../page.ts';
import type { Query, RequestOptions, Result, Transport } from '../transport.ts';
import type { StoredFile } from '../types.generated.ts';
import { type FileBytes, type UploadProgress, uploadBodyOf } from '../upload.ts';

export interface UploadParams {
  /** The environment of the sessions that can use the file. */
  environment: string;
  /** Default: the name of a browser's `File`; otherwise none. */
  filename?: string | undefined;
  /** Distinguishes kinds of text, such as `text/csv`; everything else has the type of its bytes. Default: that of a `Blob`. */
  mediaType?: string | undefined;
  /** Called as the content is sent; it starts again if the call is retried. */
  onProgress?: ((progress: UploadProgress) => void) | undefined;
}

/** A range of a content, in bytes; both ends are included, as in HTTP. Without `last`: to the end. */
export interface ContentRange {
  first: number;
  last?: number | undefined;
}

/** How long an upload can take; the service accepts up to 15 minutes. */
const uploadTimeoutMs = 16 * 60_000;

/** Files that messages can name. Reading needs `read`, uploading and deleting `write`. */
export class Files {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Uploads a file of at most 32 MiB. Name it in a message:
   *
   *     const { fileId } = await client.files.upload(bytes, { environment: 'production', filename: 'receipt.pdf' });
   *     await client.sessions.sendMessage(sessionId, { content: [{ type: 'file', fileId }] });
   *
   * A stream or other iterable is read once, so a failed upload of it is not retried.
   *
   * @throws SignalboxError 413 `payload_too_large`
   * @throws ConflictError `storage_full`
   * @throws UnprocessableError `file_invalid` if it is empty
   */
  async upload(content: FileBytes, params: UploadParams, options: RequestOptions = {}): Promise<StoredFile> {
    const { environment, filename, mediaType, onProgress } = params;
    const upload = uploadBodyOf(content, { filename, mediaType, onProgress });
    const once = upload.isRepeatable ? {} : { maxRetries: 0 };
    const { file } = await this.#transport.call(
      'uploadFile',
      { query: { environment } },
      { timeoutMs: uploadTimeoutMs, ...options, ...once },
      upload,
    );
    return file;
  }

  /** Files, newest first. */
  list(params: Query<'listFiles'> = {}, options?: RequestOptions): PageRequest<StoredFile> {
    return new PageRequest(
      (cursor) => this.#transport.call('listFiles', { query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /** @throws NotFoundError */
  async get(fileId: string, options?: RequestOptions): Promise<StoredFile> {
    return (await this.#transport.call('getFile', { params: { fileId } }, options)).file;
  }

  /**
   * The bytes of a file, or of a range of it. The stream errors if the connection is cut.
   *
   * @throws NotFoundError
   * @throws SignalboxError 416 `range_invalid` if the range begins after the end
   */
  async content(
    fileId: string,
    { range }: { range?: ContentRange | undefined } = {},
    options: RequestOptions = {},
  ): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
    const headers = { accept: '*/*', ...(range && { range: `bytes=${range.first}-${range.last ?? ''}` }) };
    const { response } = await this.#transport.open('getFileContent', { params: { fileId } }, options, headers);
    return response.body as ReadableStream<Uint8Array<ArrayBuffer>>;
  }

  /**
   * Deletes a file. Messages keep the part that names it, without its content.
   *
   * @throws NotFoundError
   */
  delete(fileId: string, options?: RequestOptions): Promise<Result<'deleteFile'>> {
    return this.#transport.call('deleteFile', { params: { fileId } }, options);
  }
}
