// Structured logs. One line a request, a turn and a delivery attempt, each with the ids to search by.
//
// What may stand in a line is decided where it is written: fields are named one by one, never whole objects. Errors are cut
// down to what cannot hold a prompt, a secret or a value from the database (a provider's error carries the whole prompt,
// PostgreSQL's `detail` the row).
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

/** Class, code, message of our own errors, and where it was thrown. */
function errorForLog(error: unknown): object {
  if (!(error instanceof Error)) return { type: typeof error };
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  return {
    type: error.name,
    ...(typeof code === 'string' && { code }),
    message: SPEAKS_OF_VALUES.test(error.name) || SQL_DATA_ERROR.test(String(code)) ? undefined : error.message,
    // The stack begins with the message, whose lines may look like the stack's own.
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
const SPEAKS_OF_VALUES = /^(AI_|SyntaxError|TypeValidation)/;
// PostgreSQL's codes for values that it could not take: `invalid input syntax for type uuid: "…"`.
const SQL_DATA_ERROR = /^22[0-9A-Z]{3}$/;
