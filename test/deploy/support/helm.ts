// `helm`, which scripts/get-helm.sh gets from an npm package; `.ci/run` runs that first.
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { root } from '../../sources.ts';

export const chart = join(root, 'deploy/helm/signalbox');
const cached = join(root, 'node_modules/.cache/signalbox-helm/helm');
const helm = existsSync(cached) ? cached : 'helm';

export const isHelmThere = spawnSync(helm, ['version']).status === 0;
if (!isHelmThere) process.stderr.write('The chart is not rendered: run scripts/get-helm.sh, or install helm.\n');

/** Runs a command of helm with these values. It reaches no cluster. */
export function runHelm(args: readonly string[], values: object): SpawnSyncReturns<string> {
  const env = { ...process.env, KUBECONFIG: '/dev/null' };
  return spawnSync(helm, [...args, '--values', '-'], { input: stringify(values), encoding: 'utf8', env });
}
