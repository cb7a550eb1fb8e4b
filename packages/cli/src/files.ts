// `signalbox files …`: uploads, lists, downloads and deletes files.
import { createReadStream, createWriteStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { StoredFile, UploadProgress } from '@signalbox/client';
import { firstOf, print, serviceAt, serviceHelp, serviceOptions } from './service.ts';
import { columns, FileError, parseCommand, shown, table, UsageError } from './usage.ts';

const help = `Uploads, lists, downloads and deletes files, which messages can name.

  signalbox files upload PATH --environment NAME   upload a file of at most 32 MiB; - is standard input
  signalbox files list                             list files, newest first
  signalbox files download FILE                    write the content to its own name, or to --output
  signalbox files delete FILE                      delete a file; messages that name it stay

${columns([
  ['--environment NAME', 'upload: the environment of the sessions that can use it; list: only this environment'],
  ['--filename NAME', 'upload: the name to store (that of PATH)'],
  ['--media-type TYPE', 'upload: the kind of a text, such as text/csv; other types follow from the content'],
  ['--output PATH', 'download: where to write; - is standard output'],
  ['--limit N', 'list: at most N (20)'],
  ...serviceHelp,
])}
Listing and downloading need a key with read, uploading and deleting one with write.
`;

export async function files([verb = '--help', ...args]: string[]): Promise<void> {
  if (verb === '--help') return void process.stdout.write(help);
  const command = `files ${verb}`;
  if (verb === 'upload') return upload(command, args);
  if (verb === 'list') return list(command, args);
  if (verb === 'download') return download(command, args);
  if (verb === 'delete') return remove(command, args);
  throw new UsageError(`files: there is no "${verb}"`, 'files --help');
}

async function upload(command: string, args: string[]): Promise<void> {
  const { values, names } = parseCommand(command, 'files --help', args, ['PATH'], {
    ...serviceOptions,
    environment: { type: 'string' },
    filename: { type: 'string' },
    'media-type': { type: 'string' },
  });
  if (values.help) return void process.stdout.write(help);
  const [path = ''] = names;
  const { environment, 'media-type': mediaType } = values;
  if (environment === undefined) throw new UsageError(`${command}: --environment is missing`, 'files --help');
  const client = serviceAt(values.url, command);
  const isPiped = path === '-';
  const totalBytes = isPiped ? null : await sizeOf(path);
  const progress = progressLine();
  const file = await client.files
    .upload(isPiped ? process.stdin : createReadStream(path), {
      environment,
      filename: values.filename ?? (isPiped ? undefined : basename(path)),
      mediaType,
      onProgress: ({ sentBytes }) => progress.show({ sentBytes, totalBytes }),
    })
    .finally(progress.clear);
  if (values.json) process.stdout.write(`${JSON.stringify(file)}\n`);
  else process.stdout.write(`${file.fileId}\n`);
}

async function list(command: string, args: string[]): Promise<void> {
  const { values } = parseCommand(command, 'files --help', args, [], {
    ...serviceOptions,
    environment: { type: 'string' },
    limit: { type: 'string' },
  });
  if (values.help) return void process.stdout.write(help);
  const { environment } = values;
  const client = serviceAt(values.url, command);
  const found = await firstOf(command, values.limit, (page) => client.files.list({ environment, ...page }));
  print(found, values.json, (all) => table(all.map(rowOf)));
}

function rowOf({ fileId, environment, mediaType, bytes, createdAt, filename }: StoredFile): string[] {
  return [fileId, environment, mediaType, sizeText(bytes), createdAt, filename === null ? '' : shown(filename)];
}

async function download(command: string, args: string[]): Promise<void> {
  const { values, names } = parseCommand(command, 'files --help', args, ['FILE'], {
    ...serviceOptions,
    output: { type: 'string' },
  });
  if (values.help) return void process.stdout.write(help);
  const [fileId = ''] = names;
  const client = serviceAt(values.url, command);
  const { filename, bytes: totalBytes } = await client.files.get(fileId);
  const output = values.output ?? (filename === null ? fileId : shown(basename(filename)));
  const content = await client.files.content(fileId);
  if (output === '-') return pipeline(content, process.stdout, { end: false });
  const progress = progressLine();
  async function* counted() {
    let sentBytes = 0;
    for await (const part of content) {
      sentBytes += part.byteLength;
      progress.show({ sentBytes, totalBytes });
      yield part;
    }
  }
  // Never over another file: the name comes from the service.
  const target = createWriteStream(output, { flags: values.output === undefined ? 'wx' : 'w' });
  let isOpen = false;
  target.once('open', () => {
    isOpen = true;
  });
  try {
    await pipeline(counted, target);
  } catch (error) {
    if (isOpen) await rm(output, { force: true });
    throw 'syscall' in (error as Error)
      ? new FileError(`${output} can't be written: ${(error as Error).message}`)
      : error;
  } finally {
    progress.clear();
  }
  if (values.json) process.stdout.write(`${JSON.stringify({ fileId, path: output, bytes: totalBytes })}\n`);
  else process.stdout.write(`${output}\n`);
}

async function remove(command: string, args: string[]): Promise<void> {
  const { values, names } = parseCommand(command, 'files --help', args, ['FILE'], serviceOptions);
  if (values.help) return void process.stdout.write(help);
  const deleted = await serviceAt(values.url, command).files.delete(names[0]!);
  if (values.json) process.stdout.write(`${JSON.stringify(deleted)}\n`);
  else process.stdout.write(`deleted: ${deleted.fileId}\n`);
}

async function sizeOf(path: string): Promise<number> {
  try {
    const found = await stat(path);
    if (!found.isFile()) throw new Error('it is not a file');
    return found.size;
  } catch (error) {
    throw new FileError(`${path} can't be read: ${(error as Error).message}`);
  }
}

/** One line on a terminal's standard error; nothing elsewhere. */
function progressLine() {
  const { stderr } = process;
  let shownText = '';
  const write = (text: string) => {
    if (!stderr.isTTY || text === shownText) return;
    stderr.write(`\r\u001b[K${text}`);
    shownText = text;
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

function sizeText(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}
