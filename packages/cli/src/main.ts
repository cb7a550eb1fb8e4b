#!/usr/bin/env node
// The `signalbox` command. Output for programs (a key's secret, the log) goes to standard output, messages for people to standard
// error. Exit status: 0 success, 1 failure, 2 wrong usage.
import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';
import { SignalboxError } from '@signalbox/client';
import { FileError, UsageError } from './usage.ts';

const help = `Signalbox, a self-hosted platform for running AI agents.

On the host of the service:
  signalbox start [options]          run the service
  signalbox keys create [options]    create an API key
  signalbox users …                  manage who can sign in to the console
  signalbox database …               shard the database by organization

From anywhere, with an API key in SIGNALBOX_API_KEY:
  signalbox sessions …               list, watch, message and stop sessions
  signalbox approvals …              list, approve and deny tool calls
  signalbox schedules …              list, pause and enable schedules
  signalbox files …                  upload, list, download and delete files
  signalbox end-users …              show and erase end users
  signalbox events verify [options]  verify the event log of a service or an exported file

  signalbox --version
  signalbox COMMAND --help           show the options of a command
`;

// Later commands reuse what this one compiled: they start in half the time and need 15 MB less. If the directory can't be written,
// each command compiles for itself.
enableCompileCache(fileURLToPath(new URL('../.cache/', import.meta.url)));

// Each command loads only its own part: loading the whole service is slow, and the client commands need none of it.
async function run([command = '--help', ...rest]: string[]): Promise<void> {
  switch (command) {
    case 'start':
      return (await import('./start.ts')).start(rest);
    case 'keys': {
      const [verb, ...args] = rest;
      const { createKey } = await import('./keys.ts');
      if (verb === 'create') return createKey(args);
      if (verb === '--help') return createKey(['--help']);
      const elsewhere = ['list', 'rotate', 'delete'].includes(verb ?? '') ? ' command; use the console or the API' : '';
      throw new UsageError(
        verb === undefined ? 'keys: a subcommand is missing' : `keys: there is no "${verb}"${elsewhere}`,
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
    case 'files':
      return (await import('./files.ts')).files(rest);
    case 'end-users':
      return (await import('./end-users.ts')).endUsers(rest);
    case 'events': {
      const [verb, ...args] = rest;
      const { verify } = await import('./events.ts');
      if (verb === 'verify') return verify(args);
      if (verb === '--help') return verify(['--help']);
      throw new UsageError(
        verb === undefined ? 'events: a subcommand is missing' : `events: there is no "${verb}"`,
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

/** Errors that the user can fix: the message is enough, without a stack. */
async function isForeseen(error: unknown): Promise<boolean> {
  if ([UsageError, FileError, SignalboxError].some((kind) => error instanceof kind)) return true;
  // If the error is one of these, the module is already loaded.
  const { ConfigError, OperatorError, StartError } = await import('@signalbox/server');
  return [ConfigError, OperatorError, StartError].some((kind) => error instanceof kind);
}

try {
  await run(process.argv.slice(2));
} catch (error) {
  // Anything else is a bug of ours, and a report of it needs the stack.
  const text = (await isForeseen(error)) ? (error as Error).message : ((error as Error).stack ?? error);
  process.stderr.write(`signalbox: ${text}\n`);
  process.exitCode = ['UsageError', 'ConfigError'].includes((error as Error).name) ? 2 : 1;
}
