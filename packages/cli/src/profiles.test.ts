import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connectionOf, type Profile, profilesFile, readProfiles, writeProfiles } from './profiles.ts';

let home: string;
let env: { XDG_CONFIG_HOME: string };
beforeEach(() => {
  home = fs.mkdtempSync(join(tmpdir(), 'sb-'));
  env = { XDG_CONFIG_HOME: home };
});
afterEach(() => fs.rmSync(home, { recursive: true }));

const profile = (name: string): Profile => ({
  url: `https://${name}.example.com`,
  apiKey: `sbk_${name}`,
  key: name,
  organization: 'Acme',
});
const store = (...names: string[]) =>
  writeProfiles(env, { current: names[0]!, profiles: new Map(names.map((name) => [name, profile(name)])) });
const connect = (more: object = {}, values: { url?: string; profile?: string } = {}) => {
  try {
    const { url, apiKey } = connectionOf(values, { ...env, ...more }, 'whoami');
    return `${apiKey} ${url}`;
  } catch (error) {
    return (error as Error).message;
  }
};

test('the file and its directory are only for their owner, and nothing else is left there', async () => {
  const file = await store('one', 'two');
  expect(file).toBe(join(home, 'signalbox', 'profiles.json'));
  expect(fs.statSync(file).mode & 0o777).toBe(0o600);
  expect(fs.statSync(join(home, 'signalbox')).mode & 0o777).toBe(0o700);
  await store('three');
  expect(fs.readdirSync(join(home, 'signalbox'))).toEqual(['profiles.json']);
  expect([...readProfiles(env).profiles.keys()]).toEqual(['three']);
});

test('variables come first and as a pair, then the named profile, then the current one', async () => {
  await store('one', 'two');
  expect(connect()).toBe('sbk_one https://one.example.com');
  expect(connect({ SIGNALBOX_PROFILE: 'two' })).toBe('sbk_two https://two.example.com');
  expect(connect({ SIGNALBOX_API_KEY: 'sbk_env' })).toBe('sbk_env http://127.0.0.1:4500');
  expect(connect({ SIGNALBOX_API_KEY: 'sbk_env', SIGNALBOX_PORT: '4380' })).toBe('sbk_env http://127.0.0.1:4380');
  expect(connect({ SIGNALBOX_API_KEY: 'sbk_env', SIGNALBOX_PORT: 'tcp://10.0.0.1:1' })).toBe(
    'sbk_env http://127.0.0.1:4500',
  );
  expect(connect({ SIGNALBOX_PORT: '4380' })).toBe('sbk_one https://one.example.com');
  expect(connect({ SIGNALBOX_API_KEY: 'sbk_env', SIGNALBOX_PROFILE: 'two', SIGNALBOX_URL: 'http://x' })).toBe(
    'sbk_env http://x',
  );
  expect(connect({ SIGNALBOX_API_KEY: 'sbk_env', SIGNALBOX_URL: 'http://x' }, { profile: 'two' })).toBe(
    'sbk_two https://two.example.com',
  );
});

test('the key of a profile is sent to no other URL', async () => {
  await store('one');
  expect(connect({}, { url: 'https://ONE.example.com/' })).toContain('sbk_one');
  for (const refused of [
    connect({}, { url: 'https://evil.example.com' }),
    connect({ SIGNALBOX_URL: 'https://evil.example.com' }),
    connect({}, { url: 'http://one.example.com', profile: 'one' }),
  ]) {
    expect(refused).toContain('only sent to https://one.example.com');
    expect(refused).not.toContain('sbk_');
  }
});

test('a missing key, a missing profile, a damaged file and one that others can read say what to do', async () => {
  expect(connect()).toContain('signalbox login');
  expect(connect({ XDG_CONFIG_HOME: '/dev/null/nowhere' })).toContain('signalbox login');
  const file = await store('one');
  expect(connect({}, { profile: 'two' })).toContain('there are one');
  fs.chmodSync(file, 0o640);
  expect(connect()).toBe(`${file} can be read by others. Run: chmod 600 ${file}`);
  fs.writeFileSync(file, '{"current": "sbk_secret');
  fs.chmodSync(file, 0o600);
  expect(connect()).toContain('is damaged');
  expect(connect()).not.toContain('sbk_');
});

test('a link to the file, as programs that manage dotfiles make it, stays a link', async () => {
  const file = await store('one');
  const managed = join(home, 'managed.json');
  fs.renameSync(file, managed);
  fs.symlinkSync(managed, file);
  await store('two');
  expect(fs.readlinkSync(file)).toBe(managed);
  expect([...readProfiles(env).profiles.keys()]).toEqual(['two']);
});

test('if the file cannot be written, the error says what to do', async () => {
  fs.mkdirSync(join(home, 'signalbox/profiles.json'), { recursive: true });
  await expect(store('two')).rejects.toThrow(/can't be stored in .*profiles.json \(EISDIR\)/);
  await expect(
    writeProfiles({ XDG_CONFIG_HOME: '/proc/none' }, readProfiles({ XDG_CONFIG_HOME: '/nowhere' })),
  ).rejects.toThrow('Set XDG_CONFIG_HOME');
});

test('without XDG_CONFIG_HOME it is below the home directory; a relative one is ignored, as its specification says', () => {
  expect(profilesFile({ HOME: '/home/ada' })).toBe('/home/ada/.config/signalbox/profiles.json');
  expect(profilesFile({ HOME: '/home/ada', XDG_CONFIG_HOME: 'here' })).toBe(
    '/home/ada/.config/signalbox/profiles.json',
  );
});
