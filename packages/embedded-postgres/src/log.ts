/** Two methods of pino's loggers, and of many others. No line contains a password. */
export interface PostgresLog {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const silent: PostgresLog = { info() {}, error() {} };
