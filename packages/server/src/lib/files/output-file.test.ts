import { execFileSync, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FileError, type OutputOptions, writeOutputFile } from './output-file.ts';

let directory: string;
let path: string;
beforeEach(() => {
  directory = fs.mkdtempSync(join(tmpdir(), 'sb-'));
  path = join(directory, 'report.pdf');
});
afterEach(() => fs.rmSync(directory, { recursive: true }));

const put = (text: string, options: OutputOptions = {}, to = path) =>
  writeOutputFile(to, (file) => pipeline([text], file), options);
const fail = async (options: OutputOptions = {}, to = path) =>
  writeOutputFile(
    to,
    async (file) => {
      file.write('half');
      throw new Error('the source broke');
    },
    options,
  );
const read = (file = path) => fs.readFileSync(file, 'utf8');

test('a file is replaced as a whole and keeps its mode; when writing fails, it is as it was before and nothing is left', async () => {
  await expect(fail()).rejects.toThrow('the source broke');
  expect(fs.readdirSync(directory)).toEqual([]);
  await put('first');
  fs.chmodSync(path, 0o640);
  await expect(fail()).rejects.toThrow('the source broke');
  expect(read()).toBe('first');
  await put('second');
  expect([read(), fs.statSync(path).mode & 0o777]).toEqual(['second', 0o640]);
  expect(fs.readdirSync(directory)).toEqual(['report.pdf']);
});

test('a new file never replaces what is there, and is not created through a link', async () => {
  await put('mine');
  await expect(put('theirs', { isNew: true })).rejects.toThrow(`${path} exists already`);
  const [dangling, elsewhere] = [join(directory, 'dangling'), join(directory, 'elsewhere')];
  fs.symlinkSync(elsewhere, dangling);
  await expect(put('theirs', { isNew: true }, dangling)).rejects.toThrow('exists already');
  // Another program takes the name while the file is written.
  const late = join(directory, 'late');
  const taken = writeOutputFile(late, async () => fs.writeFileSync(late, 'mine'), { isNew: true });
  await expect(taken).rejects.toThrow('exists already');
  expect([read(), read(late), fs.readdirSync(directory).sort()]).toEqual([
    'mine',
    'mine',
    ['dangling', 'late', 'report.pdf'],
  ]);
  await put('secret', { isNew: true, mode: 0o600 }, elsewhere);
  expect(fs.statSync(elsewhere).mode & 0o777).toBe(0o600);
});

test('the target of a link is written and the link stays, whether or not the target exists', async () => {
  fs.mkdirSync(join(directory, 'other'));
  fs.symlinkSync('other', join(directory, 'folder'));
  fs.symlinkSync('../target', join(directory, 'other/second'));
  fs.symlinkSync('folder/second', path);
  for (const text of ['created', 'replaced']) {
    await put(text);
    expect([read(join(directory, 'target')), fs.readlinkSync(path)]).toEqual([text, 'folder/second']);
    await expect(fail()).rejects.toThrow('the source broke');
    expect(read(join(directory, 'target'))).toBe(text);
  }
});

test('a pipe and a device are written to, and are still there when that fails', async () => {
  execFileSync('mkfifo', [path]);
  const reader = fs.promises.readFile(path, 'utf8');
  await put('through');
  expect([await reader, fs.statSync(path).isFIFO()]).toEqual(['through', true]);

  const full = join(directory, 'full');
  // Only the superuser can create a device. Linux has one that is always full.
  const isOwn = spawnSync('mknod', ['-m', '666', full, 'c', '1', '7']).status === 0;
  if (!isOwn) fs.symlinkSync('/dev/full', full);
  await expect(put('x', {}, full)).rejects.toThrow(`${full} can't be written: the disk is full. Free some space`);
  expect([fs.statSync(full).isCharacterDevice(), fs.lstatSync(full).isSymbolicLink()]).toEqual([true, !isOwn]);
});

test('on a full disk, what was there stays', () => {
  const program = `import { writeOutputFile } from ${JSON.stringify(join(import.meta.dirname, 'output-file.ts'))};
    const write = async (file) => { for (let n = 0; n < 100; n += 1) file.write(Buffer.alloc(65_536)); };
    await writeOutputFile(${JSON.stringify(path)}, write).catch(({ name, message }) => console.log(name, message));`;
  const run = () =>
    execFileSync('sh', ['-c', 'ulimit -f 100 && exec "$0" --input-type=module -e "$1"', process.execPath, program], {
      encoding: 'utf8',
    });
  expect(run()).toBe(
    `FileError ${path} can't be written: the file is too large for its file system or a limit of this user. Nothing was left there.\n`,
  );
  fs.writeFileSync(path, 'precious');
  expect(run()).toContain('It is as it was before.');
  expect([read(), fs.readdirSync(directory)]).toEqual(['precious', ['report.pdf']]);
});

test('a draft of a process that was killed is removed, and other files with such names are left alone', async () => {
  const files = [
    '.99999999.part',
    '.99999998-2.part',
    '.99999997.part',
    `.${process.pid}.part`,
    '.old.part',
    '.99999996.part.txt',
  ];
  for (const name of files) fs.writeFileSync(`${path}${name}`, 'draft');
  const longAgo = new Date(0);
  for (const name of files.filter((name) => !name.includes('99999997')))
    fs.utimesSync(`${path}${name}`, longAgo, longAgo);
  await put('whole');
  // The third is being written, perhaps by a process in another container.
  const kept = ['', ...files.slice(2)].map((name) => `report.pdf${name}`);
  expect(fs.readdirSync(directory).sort()).toEqual(kept.sort());
});

test('an error names the file and what would be right', async () => {
  await expect(put('x', {}, directory)).rejects.toThrow(`${directory} is a directory. Name a file in it.`);
  await expect(put('x', {}, join(directory, 'no/where'))).rejects.toThrow('its directory does not exist');
  await put('file');
  await expect(put('x', {}, join(path, 'below'))).rejects.toThrow('its directory does not exist');
  fs.symlinkSync('loop', join(directory, 'loop'));
  await expect(put('x', {}, join(directory, 'loop'))).rejects.toThrow('a link that leads to itself');
  await expect(put('x', {}, join(directory, 'x'.repeat(300)))).rejects.toBeInstanceOf(FileError);
});
