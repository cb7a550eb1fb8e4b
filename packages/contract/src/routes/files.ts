import { maxFileBytes } from '../constants.ts';
import { FileContent, FilePage, FileParams, ListFiles, StoredFile, UploadQuery } from '../files.ts';
import { deleted, one, table } from './route.ts';

export const fileRoutes = table({
  uploadFile: {
    method: 'POST',
    path: '/files',
    scope: 'sessions:run',
    token: 'send',
    tokenFields: ['environment'],
    agents: 'open',
    tag: 'Files',
    summary: 'Upload a file',
    description:
      'The body is the content: 1 byte to 32 MiB, of any type. Or it is `multipart/form-data` with one file, whose part has the name and the type. A file that no session or schedule names is deleted after a time that the operator sets, 30 days by default.',
    query: UploadQuery,
    upload: { maxBytes: maxFileBytes },
    status: 201,
    result: one('file', StoredFile),
    errors: ['not_found', 'file_invalid', 'storage_full'],
  },
  listFiles: {
    method: 'GET',
    path: '/files',
    scope: 'sessions:read',
    tag: 'Files',
    summary: 'List files',
    description: 'Newest first.',
    query: ListFiles,
    status: 200,
    result: FilePage,
  },
  getFile: {
    method: 'GET',
    path: '/files/{fileId}',
    scope: 'sessions:read',
    token: 'read',
    tag: 'Files',
    summary: 'Get a file',
    description: 'What is known about it, without its content.',
    params: FileParams,
    status: 200,
    result: one('file', StoredFile),
  },
  getFileContent: {
    method: 'GET',
    path: '/files/{fileId}/content',
    scope: 'sessions:read',
    token: 'read',
    tag: 'Files',
    summary: 'Get the content of a file',
    description:
      'The bytes, as a download that no browser runs. One range (`Range: bytes=0-999`) is served with 206; `ETag` is the SHA-256, for `If-None-Match` and `If-Range`.',
    params: FileParams,
    status: 200,
    result: FileContent,
    stream: 'content',
    errors: ['range_invalid'],
  },
  deleteFile: {
    method: 'DELETE',
    path: '/files/{fileId}',
    scope: 'sessions:run',
    tag: 'Files',
    summary: 'Delete a file',
    description:
      'Permanently. Messages that name the file keep the part without its content, and a model gets a note that the file was deleted.',
    params: FileParams,
    status: 200,
    result: deleted('fileId', 'file'),
  },
});
