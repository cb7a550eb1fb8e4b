// The `signalbox` command. Output for programs (a key's secret, the log) goes to standard output, messages for people to standard
// error. Exit status: 0 success, 1 failure, 2 wrong usage.
import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

// Later commands reuse what this one compiled: they start in half the time and need 15 MB less. If the directory can't be written,
// each command compiles for itself.
enableCompileCache(fileURLToPath(new URL('.cache/', import.meta.resolve('signalbox/package.json'))));

const { processTerminal } = await import('./terminal.ts');
const { runCommandLine } = await import('./run.ts');

// A reader that has seen enough (`signalbox sessions list --all | head`) is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

process.exitCode = await runCommandLine(process.argv.slice(2), processTerminal());
