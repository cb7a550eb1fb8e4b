// Structured logs: one line for each request, turn and delivery attempt, with the ids to search by.
//
// The code that logs decides what a line contains: it names fields one by one, and never logs whole objects. Errors are reduced to
// what can't contain a prompt, a secret or a value from the database (a provider's error contains the whole prompt, and PostgreSQL's
// `detail` the row).
import { type Logger, pino } from 'pino';

export type Log = Logger;

export function createLog(options: { level: string; destination?: { write(line: string): void } }): Log {
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (level) => ({ level }) },
      serializers: { err: errorForLog },
    },
    options.destination ?? pino.destination({ dest: 1, sync: true }),
  );
}

/** Class, code and stack of an error, and its message if that can't contain values. */
function errorForLog(error: unknown): object {
  if (!(error instanceof Error)) return { type: typeof error };
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  return {
    type: error.name,
    ...(typeof code === 'string' && { code }),
    message: QUOTES_VALUES.test(error.name) || SQL_DATA_ERROR.test(String(code)) ? undefined : error.message,
    // The stack starts with the message, whose lines may look like stack frames.
    at: error.stack
      ?.replace(error.message, '')
      .split('\n')
      .filter((line) => /^\s+at /.test(line))
      .slice(0, 8)
      .map((line) => line.trim()),
    ...(cause instanceof Error && { cause: errorForLog(cause) }),
  };
}

// Names of errors whose message quotes what was sent or received.
const QUOTES_VALUES = /^(AI_|SyntaxError|TypeValidation)/;
// PostgreSQL's codes for values that it refuses: `invalid input syntax for type uuid: "…"`.
const SQL_DATA_ERROR = /^22[0-9A-Z]{3}$/;
