// Where people open the console. The service knows it, of its settings and of the port that it listens on; it keeps it in the
// database for `signalbox users`, which makes links beside it and was not started with its settings.
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';

/** Called by a node once it serves the console: the newest is right. */
export async function storeConsoleUrl(db: Db, { origin }: URL): Promise<void> {
  await db.query(sql`
    insert into installation (console_origin) values (${origin})
    on conflict (only_row) do update set console_origin = excluded.console_origin`);
}

/** Undefined where no node has served the console yet. */
export async function readConsoleUrl(db: Db): Promise<URL | undefined> {
  const [row] = await db.query<{ consoleOrigin: string }>(sql`
    select console_origin as "consoleOrigin" from installation`);
  return row && new URL(row.consoleOrigin);
}
