// Runs programs of images (image.ts) as their containers would, without a container engine.
import { type ChildProcess, spawn } from 'node:child_process';
import { chownSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createLocate, type Image, locatedEnv, type Mounts, pathsOf, userOf } from './image.ts';

/** A program of an image, with what its container adds. */
export interface Container {
  image: Image;
  env?: Readonly<Record<string, string>>;
  /** Folders of this machine by their path in the container. */
  mounts?: Mounts;
}

/** What `spawn` needs to run a command in the container. */
export function inContainer({ image, env = {}, mounts = {} }: Container, command: readonly string[]) {
  const locate = createLocate(image, mounts);
  const [program = '', ...args] = command.map(locate);
  const own = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, locate(value)]));
  const home = { HOME: join(image.root, image.user === 'root' ? 'tmp' : 'home/node') };
  const options = {
    cwd: locate(image.workdir),
    env: { ...pathsOf(image), ...home, ...locatedEnv(image, mounts), ...own },
    ...userOf(image),
  };
  return { program, args, options };
}

/** A folder that the user of the image can write to, as a volume is. */
export function createVolume(folder: string, image: Image): string {
  mkdirSync(folder, { mode: 0o700, recursive: true });
  const { uid } = userOf(image);
  if (uid !== undefined) chownSync(folder, uid, uid);
  return folder;
}

export interface Running {
  container: Container;
  child: ChildProcess;
  /** What it has printed. */
  output(): string;
  /** Its exit status and signal. */
  ended: Promise<[number | null, NodeJS.Signals | null]>;
}

/** Runs the command of the image, or its entry point with other arguments. */
export function startContainer(container: Container, args: readonly string[] = container.image.command): Running {
  const { program, args: rest, options } = inContainer(container, [...container.image.entrypoint, ...args]);
  const child = spawn(program, rest, { ...options, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const ended = new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
    child.once('error', reject).once('close', (...end) => resolve(end));
  });
  return { container, child, output: () => output, ended };
}

/** Ends what is left of it, with its children. */
export async function endContainer({ child, ended }: Running): Promise<void> {
  if (child.exitCode === null && child.signalCode === null && child.pid !== undefined)
    process.kill(-child.pid, 'SIGKILL');
  await ended.catch(() => {});
}

/** Waits for a response with this status, or the end of the program. */
export async function responds(running: Pick<Running, 'ended' | 'output'>, url: string, status = 200): Promise<void> {
  let end: string | undefined;
  running.ended.then(
    (result) => (end = `It ended (${result}): ${running.output()}`),
    (error: Error) => (end = error.message),
  );
  for (;;) {
    const response = await fetch(url).catch(() => undefined);
    if (response?.status === status) return;
    if (end !== undefined) throw new Error(end);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
