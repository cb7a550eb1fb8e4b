// Deletes the records of idempotent requests (idempotency.ts) that are about an end user who is erased, before they expire: they name the
// end user, or a session or a file that is gone.
import sql from 'sql-template-tag';
import type { Db } from '../db/db.ts';
import { parseId } from '../lib/ids.ts';
import { endUserSubject } from './record-subjects.ts';

interface Found {
  callerId: string;
  idempotencyKey: string;
  subjects: string[];
}

const BATCH = 1_000;
const ZERO_UUID = '00000000-0000-0000-0000-000000000000';

/** After everything else of the end user is deleted. Reads the records of the organization once, some at a time. */
export async function eraseResponses(
  db: Db,
  organizationId: string,
  endUserId: string,
  signal: AbortSignal,
): Promise<void> {
  const endUser = endUserSubject(endUserId);
  const shown = `"endUser":{"id":${JSON.stringify(endUserId)}`;
  let after = { callerId: ZERO_UUID, idempotencyKey: '' };
  for (let found = BATCH; found === BATCH && !signal.aborted; ) {
    // Nodes of the previous release store no subjects. Its responses name whom they are for, or their session or file.
    const page = await db.query<Found>(sql`
      select r.caller_id as "callerId", r.idempotency_key as "idempotencyKey",
        coalesce(r.subjects, array_remove(array[
          case when strpos(r.body, ${shown}) > 0 then ${endUser} end,
          substring(r.body from '^\\{"(?:approval|share)":\\{[^{]*?"sessionId":"(ses_[0-9a-z]{26})"'),
          substring(r.body from '^\\{"file":\\{[^{]*?"fileId":"(file_[0-9a-z]{26})"')], null)) as subjects
      from idempotency_records r
      where r.organization_id = ${organizationId}
        and (r.caller_id, r.idempotency_key) > (${after.callerId}, ${after.idempotencyKey})
      order by r.caller_id, r.idempotency_key limit ${BATCH}`);
    found = page.length;
    after = page.at(-1) ?? after;
    const gone = await goneOf(db, organizationId, page);
    const erased = page.filter(({ subjects }) => subjects.some((subject) => subject === endUser || gone.has(subject)));
    if (erased.length === 0) continue;
    await db.execute(sql`
      delete from idempotency_records r
      using unnest(${erased.map((one) => one.callerId)}::uuid[], ${erased.map((one) => one.idempotencyKey)}::text[]) e(caller, key)
      where r.organization_id = ${organizationId} and r.caller_id = e.caller and r.idempotency_key = e.key`);
  }
}

/** The sessions and files that the records name and that do not exist. */
async function goneOf(db: Db, organizationId: string, page: readonly Found[]): Promise<Set<string>> {
  const subjects = page.flatMap((record) => record.subjects);
  const named = (prefix: 'ses' | 'file') =>
    new Map(subjects.flatMap((id) => [parseId(prefix, id) ?? []].flat().map((uuid) => [uuid, id] as const)));
  const [sessions, files] = [named('ses'), named('file')];
  const existing = await Promise.all([
    sessions.size === 0
      ? []
      : db.query<{ id: string }>(sql`
        select s.session_id as id from sessions s
        where s.organization_id = ${organizationId} and s.session_id = any(${[...sessions.keys()]}::uuid[])`),
    files.size === 0
      ? []
      : db.query<{ id: string }>(sql`
        select f.file_id as id from files f
        where f.organization_id = ${organizationId} and f.file_id = any(${[...files.keys()]}::uuid[])`),
  ]);
  for (const { id } of existing.flat()) {
    sessions.delete(id);
    files.delete(id);
  }
  return new Set([...sessions.values(), ...files.values()]);
}
