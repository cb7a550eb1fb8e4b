// Errors for people: what failed, field by field, the id of the request, and what to do next.
import { SignalboxError } from '@signalbox/client';
import { FileError } from '@signalbox/server/output-file';
import { CommandError, UsageError } from './command.ts';
import type { Terminal } from './terminal.ts';
import { shownLines } from './text.ts';

export async function errorText(error: Error, { stderr, env }: Terminal): Promise<string> {
  const name = stderr.styled('red', 'signalbox:');
  if (error instanceof SignalboxError) {
    const next = nextStep(error, env);
    return `${name} ${shownLines(error.message)}\n${next === undefined ? '' : `${next}\n`}`;
  }
  // Anything that is not foreseen is a bug of ours, and a report of it needs the stack.
  return `${name} ${shownLines(String((await isForeseen(error)) ? error.message : (error?.stack ?? error)))}\n`;
}

/** The user can fix it: the message is enough. */
async function isForeseen(error: Error): Promise<boolean> {
  if ([UsageError, CommandError, FileError].some((kind) => error instanceof kind)) return true;
  // If the error is one of these, the module is already loaded.
  const { ConfigError, OperatorError, StartError } = await import('@signalbox/server');
  return [ConfigError, OperatorError, StartError].some((kind) => error instanceof kind);
}

function nextStep({ status, code }: SignalboxError, env: Terminal['env']): string | undefined {
  if (code === 'connection_error' || code === 'timeout')
    return env.SIGNALBOX_URL
      ? 'Check that the service is running and that SIGNALBOX_URL is right.'
      : 'Start a service with `signalbox start`, or name one with --url or SIGNALBOX_URL.';
  if (status === 401)
    return env.SIGNALBOX_API_KEY
      ? 'Check SIGNALBOX_API_KEY. `signalbox keys create` on the host of the service creates a key.'
      : 'Log in with another key: signalbox login';
  if (status === 403) return '`signalbox whoami` shows what this key can do.';
  if (status === 429) return 'Try again later, or raise the limit of the key: signalbox keys update --help';
  if (status >= 500) return 'The log of the service has the cause, with the id of this request.';
  return undefined;
}
