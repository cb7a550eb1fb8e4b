// Imported by each example: an ordinary mistake ends it with a line that says what to do, instead of a stack.
import { SignalboxError } from '@signalbox/client';

const createKey = 'export SIGNALBOX_API_KEY=$(npx signalbox keys create --name examples --permission admin)';

process.on('uncaughtException', (error: NodeJS.ErrnoException & { port?: number }) => {
  console.error(explanationOf(error));
  process.exit(1);
});

function explanationOf(error: NodeJS.ErrnoException & { port?: number }): unknown {
  const { message, code, port } = error;
  if (error instanceof SignalboxError) {
    const next: Record<number, string> = {
      0: '\nIn the repository, `npm start` starts the service.',
      401: `\nCreate another key: ${createKey}`,
      403: '\n`npx signalbox whoami` shows what this key can do.',
    };
    return message + (next[error.status] ?? '');
  }
  if (code === 'EADDRINUSE') return `Port ${port} is in use. Set PORT to another one.`;
  // From the constructor of the client, and from `webhooks.receiver`.
  if (message.startsWith('apiKey')) return `${message}\nCreate one: ${createKey}`;
  if (message.startsWith('secrets')) return 'Set SIGNALBOX_SIGNING_SECRET, as `npx signalbox webhooks set` printed it.';
  // The examples throw these themselves.
  return error.constructor === Error ? message : error;
}
