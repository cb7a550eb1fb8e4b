// Builds the images of a Dockerfile without a container engine. The root of an image is a folder, and the paths of the image are
// replaced by those below it. The base system is that of this machine, with the Node of the project.
import { execFile } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, dirname, join, posix } from 'node:path';
import { promisify } from 'node:util';
import { copyContext } from './build-context.ts';
import { commandIn, type Instruction, pairsIn, readDockerfile, type Stage } from './dockerfile.ts';

export interface Image {
  /** The folder that has its files. */
  root: string;
  env: Readonly<Record<string, string>>;
  workdir: string;
  user: string;
  entrypoint: readonly string[];
  command: readonly string[];
  healthCheck: readonly string[];
  stopSignal: NodeJS.Signals;
}

/** The user of images of Node, whose name is `node`. */
const NODE_UID = 1000;
export const isRoot = process.getuid?.() === 0;
const nodeFolder = dirname(process.execPath);
/** Without the commands of the workspace, which an image does not have. */
const systemPath = (process.env.PATH ?? '').split(delimiter).filter((folder) => !folder.includes('node_modules'));

export interface Build {
  /** The folder with the Dockerfile and its context. */
  context: string;
  /** The last stage if empty. */
  target?: string;
  /** An empty folder for the files of all stages. */
  scratch: string;
  /** Variables of the commands, for example the registry of packages. */
  env?: Readonly<Record<string, string>>;
}

/** A folder for images, which another user can enter, as the programs of an image run as one. */
export function createScratch(name: string): string {
  const scratch = mkdtempSync(join(tmpdir(), `signalbox-${name}-`));
  chmodSync(scratch, 0o755);
  return scratch;
}

export function buildImage({ context, target, scratch, env = {} }: Build): Promise<Image> {
  const stages = readDockerfile(readFileSync(join(context, 'Dockerfile'), 'utf8'));
  const files = mkdtempSync(join(scratch, 'context-'));
  copyContext(context, files);
  const built = new Map<string, Promise<Image>>();
  return build(target ?? stages.at(-1)!.name);

  /** Like BuildKit, builds only what the stage needs. */
  function build(name: string): Promise<Image> {
    const stage = stages.find((one) => one.name === name);
    if (!stage) throw new Error(`There is no stage ${name}`);
    const building = built.get(name) ?? buildStage(stage);
    built.set(name, building);
    return building;
  }

  async function buildStage({ name, from, instructions }: Stage): Promise<Image> {
    const root = join(scratch, name || 'image');
    mkdirSync(root);
    const base = stages.some((one) => one.name === from)
      ? await build(from)
      : baseImage(from, join(scratch, `base-of-${name}`));
    copyAll(base.root, root);
    if (isRoot) chownSync(join(root, 'home/node'), NODE_UID, NODE_UID);
    let image = { ...base, root };
    for (const instruction of instructions) image = await apply(image, instruction);
    return image;
  }

  async function apply(image: Image, { keyword, flags, text }: Instruction): Promise<Image> {
    switch (keyword) {
      case 'WORKDIR': {
        const workdir = posix.resolve(image.workdir, text);
        mkdirSync(join(image.root, workdir), { recursive: true });
        return { ...image, workdir };
      }
      case 'COPY':
        copyInto(image, text.split(/\s+/), flags.from === undefined ? files : (await build(flags.from)).root);
        return image;
      case 'RUN':
        await run(image, flags, text);
        return image;
      case 'ENV':
        return { ...image, env: { ...image.env, ...pairsIn(text) } };
      case 'USER':
        return { ...image, user: text };
      case 'STOPSIGNAL':
        return { ...image, stopSignal: text as NodeJS.Signals };
      case 'HEALTHCHECK':
        return { ...image, healthCheck: commandIn(text.replace(/^CMD\s+/, '')) };
      case 'ENTRYPOINT':
        return { ...image, entrypoint: commandIn(text), command: [] };
      case 'CMD':
        return { ...image, command: commandIn(text) };
      default:
        // VOLUME and EXPOSE change no file.
        return image;
    }
  }

  /** Does not block this process, which may be the registry of packages. */
  async function run(image: Image, { mount }: Instruction['flags'], text: string): Promise<void> {
    if (mount !== undefined && !mount.startsWith('type=cache,'))
      throw new Error(`This mount is not known here: ${mount}`);
    const options = {
      cwd: join(image.root, image.workdir),
      env: { ...buildEnv(image, scratch), ...env },
      maxBuffer: 1 << 26,
      ...userOf(image),
    };
    await promisify(execFile)('sh', ['-euc', createLocate(image)(text)], options).catch((error: unknown) => {
      const { stdout, stderr } = error as { stdout: string; stderr: string };
      throw new Error(`RUN ${text}\n${stdout}${stderr}`);
    });
  }
}

function baseImage(from: string, root: string): Image {
  const [, version = ''] = /^node:([\d.]+)-[\w-]*slim$/.exec(from) ?? [];
  if (!`${process.versions.node}.`.startsWith(`${version}.`))
    throw new Error(`Node ${process.versions.node} is not that of ${from}`);
  for (const folder of ['usr/local/bin', 'tmp', 'home/node']) mkdirSync(join(root, folder), { recursive: true });
  const none: readonly string[] = [];
  return {
    root,
    env: {},
    workdir: '/',
    user: 'root',
    entrypoint: none,
    command: none,
    healthCheck: none,
    stopSignal: 'SIGTERM',
  };
}

function copyInto(image: Image, words: string[], from: string): void {
  const target = words.pop()!;
  const sources = words.flatMap((word) => {
    const found = /[*?]/.test(word) ? globSync(word, { cwd: from }) : [word];
    if (found.length === 0) throw new Error(`COPY finds no ${word}`);
    return found.map((path) => join(from, path));
  });
  const to = join(image.root, posix.resolve(image.workdir, target));
  for (const source of sources) {
    const isFolder = statSync(source).isDirectory();
    const place = !isFolder && /(^\.|\/)$/.test(target) ? join(to, basename(source)) : to;
    mkdirSync(dirname(place), { recursive: true });
    copyAll(source, place);
  }
}

/** With links as they are. */
function copyAll(from: string, to: string): void {
  cpSync(from, to, { recursive: true, verbatimSymlinks: true, mode: 0 });
}

/** For commands that use npm: the registry and the cache of this machine, and nothing of the npm that runs the tests. */
export const npmEnv: Readonly<NodeJS.ProcessEnv> = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => /^(HOME|npm_config_(registry|cafile|cache))$/.test(name)),
  ),
  PATH: [nodeFolder, ...systemPath].join(delimiter),
  npm_config_prefer_offline: 'true',
  npm_config_update_notifier: 'false',
};

function buildEnv(image: Image, scratch: string): NodeJS.ProcessEnv {
  const tools = join(scratch, 'tools');
  if (!isRoot) {
    // Only root can give files away; here they remain files of this user, who runs the image as well.
    mkdirSync(tools, { recursive: true });
    writeFileSync(join(tools, 'chown'), '#!/bin/sh\n', { mode: 0o755 });
  }
  return {
    ...npmEnv,
    ...pathsOf(image, tools),
    npm_config_prefix: join(image.root, 'usr/local'),
    ...locatedEnv(image),
  };
}

export const pathsOf = ({ root }: Image, ...others: string[]) => ({
  PATH: [join(root, 'usr/local/bin'), nodeFolder, ...others, ...systemPath].join(delimiter),
});

export const locatedEnv = (image: Image, mounts: Mounts = {}) =>
  Object.fromEntries(Object.entries(image.env).map(([name, value]) => [name, createLocate(image, mounts)(value)]));

export type Mounts = Readonly<Record<string, string>>;

/** Replaces the absolute paths in a text by what they are here. Devices and shells are of this machine. */
export function createLocate({ root }: Pick<Image, 'root'>, mounts: Mounts = {}): (text: string) => string {
  const place = (path: string) => {
    const mount = Object.keys(mounts).find((folder) => path === folder || path.startsWith(`${folder}/`));
    return mount === undefined ? root + path : mounts[mount]! + path.slice(mount.length);
  };
  return (text) => text.replaceAll(/(?<![\w.:/@~}-])\/(?!dev\/|proc\/|bin\/)[a-z][\w./-]*/g, place);
}

export const userOf = ({ user }: Pick<Image, 'user'>) => {
  const uid = user === 'node' ? NODE_UID : Number(user.split(':')[0]);
  return isRoot && user !== 'root' ? { uid, gid: uid } : {};
};
