import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { loadMasterKeys, MasterKeyFileError, parseMasterKeys } from './master-key.ts';

let dataDir: string;
let path: string;

beforeEach(async () => {
  dataDir = join(await fs.mkdtemp(join(tmpdir(), 'sb-')), 'data');
  path = join(dataDir, 'master.key');
});
afterEach(() => fs.rm(join(dataDir, '..'), { recursive: true }));

test('a key is 32 bytes in base64, base64url or hex; several keep their order', () => {
  const keys = [randomBytes(32), randomBytes(32), randomBytes(32)] as const;
  const text = [keys[0].toString('base64'), keys[1].toString('hex'), keys[2].toString('base64url')].join(', ');
  expect(parseMasterKeys(text)).toEqual(keys);
});

test('anything else is refused without being shown', () => {
  const good = randomBytes(32).toString('hex');
  for (const wrong of [
    '',
    ',',
    'short',
    randomBytes(31).toString('hex'),
    randomBytes(33).toString('base64'),
    `${good}0`,
  ]) {
    expect(() => parseMasterKeys(wrong)).toThrow(/use 32 bytes/);
  }
  expect(() => parseMasterKeys(`${good},hunter2`)).toThrow(/^key 2 of 2 (?!.*hunter2)/);
});

test('the key file is created once, readable only by its owner, and never changes', async () => {
  const [first, second] = await Promise.all([loadMasterKeys(dataDir), loadMasterKeys(dataDir)]);
  expect(first).toEqual(second);
  expect(await loadMasterKeys(dataDir)).toEqual(first);
  expect((await fs.stat(path)).mode & 0o777).toBe(0o600);
  expect((await fs.stat(dataDir)).mode & 0o777).toBe(0o700);
  expect(await fs.readdir(dataDir)).toEqual(['master.key']);
});

test('a file that others can read, or that has no key, is refused and left unchanged', async () => {
  await loadMasterKeys(dataDir);
  await fs.chmod(path, 0o640);
  await expect(loadMasterKeys(dataDir)).rejects.toThrow(`chmod 600 ${path}`);
  await fs.chmod(path, 0o600);
  await fs.writeFile(path, '');
  await expect(loadMasterKeys(dataDir)).rejects.toThrow(MasterKeyFileError);
  expect(await fs.readFile(path, 'utf8')).toBe('');
});

test('a data directory that is a file is refused in one line', async () => {
  await fs.writeFile(dataDir, '');
  await expect(loadMasterKeys(dataDir)).rejects.toThrow(/^The data directory .* is not a directory/);
});
