// `signalbox files …`: uploads, lists, downloads and deletes files.
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { StoredFile, UploadProgress } from '@signalbox/client';
import { writeOutputFile } from '@signalbox/server/output-file';
import { CommandError, command } from '../command.ts';
import { listOptions, printList, printRecord, printResult, timeText } from '../print.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import type { Column } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { shown, sizeText } from '../text.ts';

const file = { file: { about: 'the id of the file, file_…' } } as const;

const upload = command({
  name: 'upload',
  summary: 'Upload a file of at most 32 MiB, which messages can name, and print its id',
  arguments: { path: { about: 'the file; - is standard input' } },
  options: {
    environment: {
      type: 'string',
      value: 'NAME',
      required: true,
      about: 'the environment of the sessions that can use it',
    },
    filename: { type: 'string', value: 'NAME', about: 'the name to store (that of PATH)' },
    'media-type': {
      type: 'string',
      value: 'TYPE',
      about: 'the media type of a text file, such as text/csv; other types are recognized by their content',
    },
    ...serviceOptions,
  },
  examples: [
    ['files upload invoice.pdf --environment production', 'upload a file'],
    [
      'pg_dump shop | signalbox files upload - --environment staging --filename shop.sql',
      'upload what a command prints',
    ],
  ],
  needs: ['sessions:run'],
  operations: ['uploadFile'],
  async run(input) {
    const { values, args, terminal } = input;
    const { environment, 'media-type': mediaType } = values;
    const client = serviceOf(input);
    const isPiped = args.path === '-';
    const totalBytes = isPiped ? null : await sizeOf(args.path);
    const progress = progressLine(terminal);
    const stored = await client.files
      .upload(isPiped ? terminal.stdin : createReadStream(args.path), {
        environment,
        filename: values.filename ?? (isPiped ? undefined : basename(args.path)),
        mediaType,
        onProgress: ({ sentBytes }) => progress.show({ sentBytes, totalBytes }),
      })
      .finally(progress.clear);
    await printResult(input, stored, stored.fileId);
  },
});

const list = command({
  name: 'list',
  summary: 'List files, newest first',
  options: {
    environment: { type: 'string', value: 'NAME', about: 'only this environment' },
    ...listOptions,
    ...serviceOptions,
  },
  examples: [['files list --environment production', 'the files of an environment']],
  needs: ['sessions:read'],
  operations: ['listFiles'],
  run(input) {
    const { environment } = input.values;
    const client = serviceOf(input);
    return printList(input, (page) => client.files.list({ environment, ...page }), {
      id: ({ fileId }) => fileId,
      describe: (): Column<StoredFile>[] => [
        { header: 'FILE', cell: ({ fileId }) => fileId },
        { header: 'NAME', cell: ({ filename }) => shown(filename ?? ''), shrinks: true },
        { header: 'SIZE', cell: ({ bytes }) => sizeText(bytes) },
        { header: 'TYPE', cell: ({ mediaType }) => shown(mediaType), shrinks: true, optional: true },
        { header: 'ENVIRONMENT', cell: (one) => one.environment, shrinks: true, optional: true },
        { header: 'UPLOADED BY', cell: uploaderText, shrinks: true, optional: true },
        { header: 'CREATED', cell: ({ createdAt }) => timeText(createdAt, input.terminal), optional: true },
      ],
    });
  },
});

/** Empty for a file of a tool. */
function uploaderText({ uploadedBy }: StoredFile): string {
  if (!uploadedBy) return '';
  const { id, name } = uploadedBy;
  return shown(id === null || id === name ? name : `${name} (${id})`);
}

const get = command({
  name: 'get',
  summary: 'Show the name, type, size and environment of a file',
  arguments: file,
  options: serviceOptions,
  examples: [['files get file_01k9…', 'what a file is']],
  needs: ['sessions:read'],
  operations: ['getFile'],
  async run(input) {
    const found = await serviceOf(input).files.get(input.args.file);
    await printResult(input, found, () =>
      printRecord(input.terminal, [
        ['File', found.fileId],
        ['Name', shown(found.filename ?? '')],
        ['Type', shown(found.mediaType)],
        ['Size', sizeText(found.bytes)],
        ['Environment', found.environment],
        ['Uploaded by', uploaderText(found)],
        ['Created', timeText(found.createdAt, input.terminal)],
      ]),
    );
  },
});

const download = command({
  name: 'download',
  summary: 'Write the content of a file to its own name, or to --output',
  details:
    'Without --output, an existing file is never overwritten. With it, the file is replaced once the download is complete; a pipe or a ' +
    'device is written to.',
  arguments: file,
  options: {
    output: { type: 'string', value: 'PATH', about: 'where to write; - is standard output' },
    ...serviceOptions,
  },
  examples: [['files download file_01k9… --output report.pdf', 'download a file']],
  needs: ['sessions:read'],
  operations: ['getFile', 'getFileContent'],
  async run(input) {
    const { values, args, terminal } = input;
    const fileId = args.file;
    const client = serviceOf(input);
    const { filename, bytes: totalBytes } = await client.files.get(fileId);
    const output = values.output ?? (filename === null ? fileId : shown(basename(filename)));
    const content = await client.files.content(fileId);
    if (output === '-') return pipeline(content, terminal.stdout.stream, { end: false });
    const progress = progressLine(terminal);
    async function* counted() {
      let sentBytes = 0;
      for await (const part of content) {
        sentBytes += part.byteLength;
        progress.show({ sentBytes, totalBytes });
        yield part;
      }
    }
    // Never over another file without --output: the name comes from the service.
    const isNew = values.output === undefined;
    await writeOutputFile(output, (target) => pipeline(counted, target), { isNew }).finally(progress.clear);
    await printResult(input, { fileId, path: output, bytes: totalBytes }, output);
  },
});

const remove = command({
  name: 'delete',
  summary: 'Delete a file; messages that name it stay',
  arguments: file,
  options: serviceOptions,
  examples: [['files delete file_01k9…', 'delete a file']],
  needs: ['sessions:run'],
  operations: ['deleteFile'],
  async run(input) {
    const deleted = await serviceOf(input).files.delete(input.args.file);
    await printResult(input, deleted, `deleted: ${deleted.fileId}`);
  },
});

export const commands = [upload, list, get, download, remove];

async function sizeOf(path: string): Promise<number> {
  try {
    const found = await stat(path);
    if (!found.isFile()) throw new Error('it is not a file');
    return found.size;
  } catch (error) {
    throw new CommandError(`${path} can't be read: ${(error as Error).message}`);
  }
}

/** One line on a terminal's standard error; nothing elsewhere. */
function progressLine({ stderr }: Terminal) {
  let shownText = '';
  const write = (text: string) => {
    if (!stderr.isTTY || text === shownText) return;
    shownText = text;
    void stderr.write(`\r\u001b[K${text}`);
  };
  return {
    show({ sentBytes, totalBytes }: UploadProgress): void {
      write(
        totalBytes ? `${Math.floor((100 * sentBytes) / totalBytes)} % of ${sizeText(totalBytes)}` : sizeText(sentBytes),
      );
    },
    clear: () => write(''),
  };
}
