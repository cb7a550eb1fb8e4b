export * from './errors.ts';
export type { PostgresLog } from './log.ts';
export {
  findPostgres,
  type Postgres,
  type PostgresOptions,
  startPostgres,
  startTemporaryPostgres,
  type TemporaryPostgresOptions,
} from './postgres.ts';
export type { Settings } from './server.ts';
