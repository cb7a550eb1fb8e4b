#!/usr/bin/env node
// The `signalbox` command. What a program would read goes to the standard output (a key's secret, the log), what a person
// reads to the standard error stream. It ends with 0, with 1 where something did not work, with 2 where it was called wrongly.
import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';
import { SignalboxError } from '@signalbox/client';
import { FileError, UsageError } from './usage.ts';

const help = `Signalbox, a platform for running AI Agents that anyone can host.

  signalbox start [options]         runs the service
  signalbox keys create [options]   makes an API key, on the host of the service
  signalbox users …                 who may sign in to the console, managed on the host of the service
  signalbox sessions …              lists, watches, messages and stops Sessions
  signalbox approvals …             lists what waits for a person, approves and denies it
  signalbox schedules …             lists, pauses and enables schedules
  signalbox database …              shards the database by organization, on the host of the service
  signalbox events verify [options] checks the event log of a service, or an export of it
  signalbox --version
  signalbox COMMAND --help          what a command takes
`;

// The next command finds what this one compiled: it is there in half the time, and needs 15 MB less. Where the directory can't be
// written, each compiles for itself.
enableCompileCache(fileURLToPath(new URL('../.cache/', import.meta.url)));

// Each command loads its own part: the whole service takes a moment, and a client of one needs nothing of it.
async function run([command = '--help', ...rest]: string[]): Promise<void> {
  switch (command) {
    case 'start':
      return (await import('./start.ts')).start(rest);
    case 'keys': {
      const [verb, ...args] = rest;
      const { createKey } = await import('./keys.ts');
      if (verb === 'create') return createKey(args);
      if (verb === '--help') return createKey(['--help']);
      const elsewhere = ['list', 'rotate', 'delete'].includes(verb ?? '')
        ? ' here, but in the console and by the interface'
        : '';
      throw new UsageError(
        verb === undefined ? 'keys: say what to do' : `keys: there is no "${verb}"${elsewhere}`,
        'keys create --help',
      );
    }
    case 'users':
      return (await import('./users.ts')).users(rest);
    case 'database':
      return (await import('./database.ts')).database(rest);
    case 'sessions':
      return (await import('./sessions.ts')).sessions(rest);
    case 'approvals':
      return (await import('./approvals.ts')).approvals(rest);
    case 'schedules':
      return (await import('./schedules.ts')).schedules(rest);
    case 'events': {
      const [verb, ...args] = rest;
      const { verify } = await import('./events.ts');
      if (verb === 'verify') return verify(args);
      if (verb === '--help') return verify(['--help']);
      throw new UsageError(
        verb === undefined ? 'events: say what to do' : `events: there is no "${verb}"`,
        'events verify --help',
      );
    }
    case '--version':
      process.stdout.write(`${(await import('@signalbox/server')).version}\n`);
      return;
    case '--help':
    case 'help':
      process.stdout.write(help);
      return;
    default:
      throw new UsageError(`there is no command "${command}"`, '--help');
  }
}

/** What people can mend, of which a line says enough. */
async function isForeseen(error: unknown): Promise<boolean> {
  if ([UsageError, FileError, SignalboxError].some((kind) => error instanceof kind)) return true;
  // Loaded already, where the error is one of these.
  const { ConfigError, OperatorError, StartError } = await import('@signalbox/server');
  return [ConfigError, OperatorError, StartError].some((kind) => error instanceof kind);
}

try {
  await run(process.argv.slice(2));
} catch (error) {
  // Anything else is a fault of ours, and its stack is what a report of it needs.
  const text = (await isForeseen(error)) ? (error as Error).message : ((error as Error).stack ?? error);
  process.stderr.write(`signalbox: ${text}\n`);
  process.exitCode = ['UsageError', 'ConfigError'].includes((error as Error).name) ? 2 : 1;
}
