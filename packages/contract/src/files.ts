/** Files: bytes that messages can name, uploaded by a caller or created by a tool. */
import {
  EnvironmentName,
  Id,
  ListQuery,
  Nullable,
  OneOf,
  Page,
  type Static,
  Strict,
  Timestamp,
  Type,
} from './schema.ts';

const mediaType = Type.String({
  description:
    'Detected from the bytes, such as `image/png`. Text keeps the type that was sent if it is `text/plain`, `text/csv`, `text/markdown`, `text/html` or `application/json`, and has its charset if it is not UTF-8: `text/csv; charset=windows-1252`. `application/octet-stream` is everything unknown.',
  examples: ['image/png'],
});
const bytes = Type.Integer({ description: 'The size of the content.' });

/** Who has uploaded a file. */
export const Uploader = Type.Object(
  {
    type: OneOf(['api_key', 'user', 'end_user']),
    id: Nullable(
      Type.String({
        description: 'ID of the key, the member or the end user; null for a session token without an end user.',
      }),
    ),
    name: Type.String({ description: 'Name at the time of the upload.' }),
  },
  { title: 'Uploader' },
);
export type Uploader = Static<typeof Uploader>;

export const StoredFile = Type.Object(
  {
    fileId: Id('file'),
    environment: EnvironmentName,
    filename: Nullable(Type.String({ description: 'Without a path.' })),
    mediaType,
    bytes,
    sha256: Type.String({ description: 'SHA-256 of the content, in lowercase hexadecimal.' }),
    sessionId: Nullable(Id('ses'), {
      description: 'The session in which a tool created the file, which is deleted with it; null for an upload.',
    }),
    uploadedBy: Nullable(Uploader, {
      description: 'Null for a file that a tool created, and for what was uploaded to an earlier release.',
    }),
    createdAt: Timestamp,
  },
  { title: 'StoredFile' },
);
export type StoredFile = Static<typeof StoredFile>;

/** A file in a message that a caller sends. */
export const FileInput = Strict({ type: Type.Literal('file'), fileId: Id('file') }, { title: 'FileInput' });

/** A file in the transcript. It stays there when the file is deleted. */
export const FilePart = Type.Object(
  { type: Type.Literal('file'), fileId: Id('file'), mediaType, bytes, filename: Type.Optional(Type.String()) },
  { title: 'FilePart' },
);
export type FilePart = Static<typeof FilePart>;

export const UploadQuery = Strict({ environment: EnvironmentName });
/** The headers of an upload beside `Content-Type`. */
export const uploadHeaders = {
  'X-Filename':
    'The name of the file, percent-encoded UTF-8 as by `encodeURIComponent`; at most 255 characters. A path in front of it is dropped.',
} as const;
export const FileParams = Strict({ fileId: Id('file') });
export const ListFiles = ListQuery({ environment: Type.Optional(EnvironmentName) });
export const FilePage = Page(StoredFile);
/** The bytes of a file, in the OpenAPI document. */
export const FileContent = Type.Unsafe<Blob>({ type: 'string', format: 'binary', title: 'FileContent' });
