// Runs a unit of systemd without systemd: its command, with its environment and credentials, as a user of its own.
import { chownSync, copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseEnv } from 'node:util';
import { createVolume, type Running, startContainer } from './container.ts';
import { createLocate, type Image, isRoot } from './image.ts';

/** Where systemd puts what belongs to a unit (`systemd.unit(5)`, specifiers). */
const folders: Readonly<Record<string, string>> = {
  '%d': '/run/credentials/signalbox.service',
  '%S': '/var/lib',
  '%C': '/var/cache',
};
/** The user that the unit names. */
const UID = 1000;

/** `root` is the folder in place of `/`, and `file` a path below it. */
export function startUnit(root: string, file: string): Running {
  const locate = createLocate({ root });
  const lines = readFileSync(locate(file), 'utf8').split('\n');
  const valuesOf = (key: string) =>
    lines
      .filter((line) => line.startsWith(`${key}=`))
      .map((line) =>
        line.slice(key.length + 1).replaceAll(/%[a-zA-Z]/g, (specifier) => folders[specifier] ?? specifier),
      );
  const [command = ''] = valuesOf('ExecStart');
  const env = Object.fromEntries(valuesOf('Environment').map((pair) => pair.split(/=(.*)/s).slice(0, 2)));
  for (const settings of valuesOf('EnvironmentFile')) {
    Object.assign(env, parseEnv(readFileSync(locate(settings.replace(/^-/, '')), 'utf8')));
  }
  for (const credential of valuesOf('LoadCredential')) {
    const [name = '', source = ''] = credential.split(':');
    const copy = locate(join(folders['%d']!, name));
    mkdirSync(dirname(copy), { recursive: true });
    copyFileSync(locate(source), copy);
    if (isRoot) chownSync(copy, UID, UID);
  }
  const none: readonly string[] = [];
  const user = { user: `${UID}:${UID}`, env: {}, entrypoint: none, command: none, healthCheck: none };
  const image: Image = { root, workdir: '/', stopSignal: 'SIGTERM', ...user };
  for (const [key, specifier] of Object.entries({ StateDirectory: '%S', CacheDirectory: '%C' })) {
    for (const name of valuesOf(key)) createVolume(locate(join(folders[specifier]!, name)), image);
  }
  return startContainer({ image, env }, command.split(' '));
}
