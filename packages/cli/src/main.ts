#!/usr/bin/env node
// The `signalbox` command. What a program would read goes to the standard output (a key's secret, the log), what a person
// reads to the standard error stream. It ends with 0, with 1 where something did not work, with 2 where it was called wrongly.
import { ConfigError, OperatorError, StartError, version } from '@signalbox/server';
import { createKey } from './keys.ts';
import { start } from './start.ts';
import { UsageError } from './usage.ts';

const help = `Signalbox, a platform for running AI Agents that anyone can host.

  signalbox start [options]         runs the service
  signalbox keys create [options]   makes an API key, on the host of the service
  signalbox --version
  signalbox COMMAND --help          what a command takes
`;

async function run([command = '--help', ...rest]: string[]): Promise<void> {
  switch (command) {
    case 'start':
      return start(rest);
    case 'keys': {
      const [verb, ...args] = rest;
      if (verb === 'create') return createKey(args);
      if (verb === '--help') return createKey(['--help']);
      throw new UsageError(
        verb === undefined ? 'keys: say what to do' : `keys: there is no "${verb}"`,
        'keys create --help',
      );
    }
    case '--version':
      process.stdout.write(`${version}\n`);
      return;
    case '--help':
    case 'help':
      process.stdout.write(help);
      return;
    default:
      throw new UsageError(`there is no command "${command}"`, '--help');
  }
}

try {
  await run(process.argv.slice(2));
} catch (error) {
  const foreseen = [UsageError, ConfigError, OperatorError, StartError].some((kind) => error instanceof kind);
  // Anything else is a fault of ours, and its stack is what a report of it needs.
  process.stderr.write(`signalbox: ${foreseen ? (error as Error).message : ((error as Error).stack ?? error)}\n`);
  process.exitCode = error instanceof UsageError || error instanceof ConfigError ? 2 : 1;
}
