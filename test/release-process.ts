// Run by release.test.ts: a release without its long steps, which can be killed or fail at any step.
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ReleaseError, release } from '../scripts/release.ts';

/** What to do differently, as environment variables. */
export type Faults = Partial<Record<'KILL_AT' | 'FAIL_AT' | 'STALE' | 'DRY_RUN', string>>;

/** Returns the exit status, what it printed, and the steps with the error at the end. */
export async function runRelease(root: string, version: string, { KILL_AT, FAIL_AT, STALE, DRY_RUN }: Faults) {
  const steps: string[] = [];
  try {
    const output = await release(
      root,
      version,
      { dryRun: DRY_RUN !== undefined },
      {
        test() {},
        generate(tree) {
          if (STALE) appendFileSync(join(tree, 'CHANGELOG.md'), 'x');
        },
        async pack(_tree, destination) {
          return ['z', 'b'].map((name) => {
            const file = join(destination, `${name}-${version}.tgz`);
            writeFileSync(file, name);
            return { name, version, file, files: ['package.json'] };
          });
        },
        keep(tree, commit) {
          appendFileSync(join(tree, 'CHANGELOG.md'), `${commit}\n`);
        },
        step(name) {
          steps.push(name);
          if (name === KILL_AT) process.kill(process.pid, 'SIGKILL');
          if (name === FAIL_AT) throw new ReleaseError(name);
        },
      },
    );
    return { ended: 0, output, steps };
  } catch (error) {
    return { ended: 1, output: '', steps: [...steps, (error as Error).message] };
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { ended } = await runRelease(process.argv[2]!, process.argv[3]!, process.env as Faults);
  process.exitCode = ended;
}
