// `npm run prove`: long runs of the tests that can run for any length of time. `npm test` has a short run of each.
// `npm run prove -- NAME …` runs some of them; `--seed N` repeats an earlier run.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));

const proofs = [
  { name: 'fuzz', files: ['packages/server/test/api/fuzz.test.ts'], env: { SIGNALBOX_FUZZ_RUNS: '500' } },
  { name: 'cost', files: ['packages/server/test/api/cost.test.ts'], env: { SIGNALBOX_COST_RUNS: '20' } },
  { name: 'kill', files: ['proofs/kill.test.ts'], env: { SIGNALBOX_FAULTS: '30' } },
  { name: 'outages', files: ['proofs/outages.test.ts', 'proofs/recovery.test.ts'], env: { SIGNALBOX_FAULTS: '12' } },
  { name: 'limits', files: ['proofs/limits.test.ts'], env: { SIGNALBOX_FAULTS: '3' } },
  { name: 'tail', files: ['proofs/tail.test.ts'] },
  { name: 'retry', files: ['proofs/retry.test.ts'], env: { SIGNALBOX_FAULTS: '30' } },
  { name: 'idempotency', files: ['proofs/idempotency.test.ts'], env: { SIGNALBOX_FAULTS: '15' } },
  { name: 'faults', files: ['proofs/faults.test.ts'], env: { SIGNALBOX_FAULTS: '20' } },
  { name: 'database', files: ['proofs/database.test.ts'], env: { SIGNALBOX_FAULTS: '15' } },
  { name: 'forks', files: ['proofs/forks.test.ts'], env: { SIGNALBOX_FAULTS: '20' } },
  { name: 'compactions', files: ['proofs/compactions.test.ts'], env: { SIGNALBOX_FAULTS: '15' } },
  { name: 'balancer', files: ['proofs/balancers.test.ts'], env: { SIGNALBOX_ROLLING_RESTARTS: '2' } },
  { name: 'soak', files: ['proofs/soak.test.ts'], env: { SIGNALBOX_SOAK_MINUTES: '60' } },
  { name: 'memory', files: ['proofs/memory.test.ts'], env: { SIGNALBOX_MEMORY_SESSIONS: '10' } },
  { name: 'poolers', files: ['proofs/poolers.test.ts'], env: { SIGNALBOX_POOLERS: '1' } },
  {
    name: 'upgrade',
    files: ['proofs/upgrade.test.ts'],
    env: { SIGNALBOX_UPGRADES: '8', SIGNALBOX_UPGRADE_ROWS: '300000' },
  },
  { name: 'images', files: ['test/deploy/delivered/'], env: { SIGNALBOX_INSTALLS: '1' } },
  { name: 'install', files: ['proofs/install.test.ts'], env: { SIGNALBOX_INSTALLS: '1' } },
  { name: 'families', files: ['packages/server/test/nodes/families.test.ts'], times: 10, env: {} },
  {
    name: 'simulation',
    files: ['packages/server/test/nodes/simulation.test.ts'],
    times: 10,
    env: { SIGNALBOX_SIMULATED_SESSIONS: '60', SIGNALBOX_SIMULATED_DISTURBANCES: '25' },
  },
];

const { values, positionals } = parseArgs({ options: { seed: { type: 'string' } }, allowPositionals: true });
const unknown = positionals.filter((name) => !proofs.some((proof) => proof.name === name));
if (unknown.length > 0) {
  console.error(`Unknown: ${unknown.join(', ')}. Choose from ${proofs.map(({ name }) => name).join(', ')}.`);
  process.exit(2);
}

const first = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const failed = [];
for (const { name, files, env, times = 1 } of proofs) {
  if (positionals.length > 0 && !positionals.includes(name)) continue;
  for (let seed = first; seed < first + times; seed += 1) {
    console.log(`\n── ${name}, --seed ${seed}`);
    const seeds = { SIGNALBOX_FUZZ_SEED: seed, SIGNALBOX_FAULT_SEED: seed, SEED: seed };
    const { status } = spawnSync(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...files], {
      cwd: root,
      stdio: 'inherit',
      env: {
        ...process.env,
        ...env,
        ...Object.fromEntries(Object.entries(seeds).map(([key, value]) => [key, String(value)])),
      },
    });
    if (status !== 0) failed.push(`npm run prove -- ${name} --seed ${seed}`);
  }
}
console.log(failed.length === 0 ? '\nAll passed.' : `\nFAILED:\n${failed.join('\n')}`);
process.exit(failed.length === 0 ? 0 : 1);
