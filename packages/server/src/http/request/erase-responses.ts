// Deletes stored responses (idempotency.ts) that show something of an end user who is erased, before they expire.
//
// Every response with a session, a schedule or a worker turn says for whom it is, with the id first. One with an approval or a file
// does not; it is deleted if that approval's session or that file is gone.
import sql from 'sql-template-tag';
import type { Db } from '../../db/db.ts';
import { uuidOf } from '../../lib/ids.ts';

interface Found {
  callerId: string;
  idempotencyKey: string;
  isOfEndUser: boolean;
  sessionId: string | null;
  fileId: string | null;
}

const BATCH = 1_000;
const ZERO_UUID = '00000000-0000-0000-0000-000000000000';

/** After everything else of the end user is deleted. Reads the responses of the organization once, some at a time. */
export async function eraseResponses(
  db: Db,
  organizationId: string,
  endUserId: string,
  signal: AbortSignal,
): Promise<void> {
  const shown = `"endUser":{"id":${JSON.stringify(endUserId)}`;
  let after = { callerId: ZERO_UUID, idempotencyKey: '' };
  for (let found = BATCH; found === BATCH && !signal.aborted; ) {
    const page = await db.query<Found>(sql`
      select r.caller_id as "callerId", r.idempotency_key as "idempotencyKey",
        coalesce(strpos(r.body, ${shown}) > 0, false) as "isOfEndUser",
        substring(r.body from '^\\{"(?:approval|share)":\\{[^{]*?"sessionId":"(ses_[0-9a-z]{26})"') as "sessionId",
        substring(r.body from '^\\{"file":\\{[^{]*?"fileId":"(file_[0-9a-z]{26})"') as "fileId"
      from idempotency_records r
      where r.organization_id = ${organizationId}
        and (r.caller_id, r.idempotency_key) > (${after.callerId}, ${after.idempotencyKey})
      order by r.caller_id, r.idempotency_key limit ${BATCH}`);
    found = page.length;
    after = page.at(-1) ?? after;
    const [sessions, files] = await Promise.all([
      existing(db, organizationId, 'session', idsOf(page, 'ses', 'sessionId')),
      existing(db, organizationId, 'file', idsOf(page, 'file', 'fileId')),
    ]);
    const erased = page.filter(
      ({ isOfEndUser, sessionId, fileId }) =>
        isOfEndUser ||
        (sessionId !== null && !sessions.has(uuidOf('ses', sessionId))) ||
        (fileId !== null && !files.has(uuidOf('file', fileId))),
    );
    if (erased.length === 0) continue;
    await db.execute(sql`
      delete from idempotency_records r
      using unnest(${erased.map((one) => one.callerId)}::uuid[], ${erased.map((one) => one.idempotencyKey)}::text[]) e(caller, key)
      where r.organization_id = ${organizationId} and r.caller_id = e.caller and r.idempotency_key = e.key`);
  }
}

function idsOf(page: readonly Found[], prefix: 'ses' | 'file', field: 'sessionId' | 'fileId'): string[] {
  return page.flatMap((one) => (one[field] === null ? [] : [uuidOf(prefix, one[field])]));
}

async function existing(
  db: Db,
  organizationId: string,
  what: 'session' | 'file',
  ids: readonly string[],
): Promise<Set<string>> {
  if (ids.length === 0) return new Set();
  const rows = await db.query<{ id: string }>(
    what === 'session'
      ? sql`
        select s.session_id as id from sessions s
        where s.organization_id = ${organizationId} and s.session_id = any(${[...ids]}::uuid[])`
      : sql`
        select f.file_id as id from files f
        where f.organization_id = ${organizationId} and f.file_id = any(${[...ids]}::uuid[])`,
  );
  return new Set(rows.map(({ id }) => id));
}
