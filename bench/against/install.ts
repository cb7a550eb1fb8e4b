// Installs peers into `bench/.peers`, where they stay for the next run. None of them is a dependency of Signalbox.
import { spawnSync } from 'node:child_process';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Peer } from './peers.ts';

/** Returns the folder, with the programs of this one. */
export async function install({ name, packages }: Peer): Promise<string> {
  const folder = fileURLToPath(new URL(`../.peers/${name}/`, import.meta.url));
  const installed = `${folder}installed.json`;
  await mkdir(folder, { recursive: true });
  await cp(fileURLToPath(new URL(name, import.meta.url)), folder, { recursive: true });
  const manifest = JSON.stringify({ private: true, type: 'module', dependencies: packages }, undefined, 2);
  if ((await readFile(installed, 'utf8').catch(() => '')) === manifest) return folder;

  console.error(
    `Installing ${Object.entries(packages)
      .map((one) => one.join('@'))
      .join(', ')} …`,
  );
  await writeFile(`${folder}package.json`, manifest);
  // Run npm's script directly: on Windows `npm` is a .cmd file, which spawn can't run without a shell.
  const npm = process.env.npm_execpath;
  const [command, args] = npm ? [process.execPath, [npm]] : ['npm', []];
  // LangGraph's newest server and newest library disagree about a package that neither needs here.
  const options = ['--ignore-scripts', '--legacy-peer-deps', '--no-audit', '--no-fund', '--loglevel=error'];
  const { status } = spawnSync(command, [...args, 'install', ...options], { cwd: folder, stdio: ['ignore', 2, 2] });
  if (status !== 0) throw new Error(`npm could not install the packages of ${name}`);
  await writeFile(installed, manifest);
  return folder;
}
