// The console's URL. A node knows it from its settings and its port, and stores it for `signalbox users`, which creates links to it and
// does not have the node's settings.
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';

/** Called by a node once it serves the console; the latest is valid. */
export async function storeConsoleUrl(db: Db, { origin }: URL): Promise<void> {
  await db.query(sql`
    insert into installation (console_origin) values (${origin})
    on conflict (only_row) do update set console_origin = excluded.console_origin`);
}

/** Undefined if no node has served the console yet. */
export async function readConsoleUrl(db: Db): Promise<URL | undefined> {
  const [row] = await db.query<{ consoleOrigin: string }>(sql`
    select console_origin as "consoleOrigin" from installation`);
  return row && new URL(row.consoleOrigin);
}
