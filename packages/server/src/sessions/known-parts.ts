// What a retry may leave out: files and messages that the conversation has, and tools of its agent.
import { type LeftOut, type RetrySession, toolNameOf } from '@signalbox/contract';
import sql from 'sql-template-tag';
import { readDefinition } from '../agents/read-definition.ts';
import type { Tx } from '../db/db.ts';
import { ApiError } from '../lib/api-error.ts';
import { formatId, uuidOf } from '../lib/ids.ts';
import { isOfSource, transcriptSources } from '../session-rows/inherited.ts';
import { leftOutOf } from '../session-rows/left-out.ts';
import { namedFiles } from '../session-rows/named-files.ts';
import type { SessionRow } from '../session-rows/session.ts';

/** What is left out from now on; undefined if nothing is. 400 names each that is unknown. `version`: of the agent, in the retry. */
export async function requireKnown(
  tx: Tx,
  { organizationId, sessionId, agentId, leftOut }: SessionRow,
  version: number,
  { fileIds = [], messageIds = [], tools = [] }: NonNullable<RetrySession['without']> = {},
): Promise<Omit<LeftOut, 'refusedFiles'> | undefined> {
  if (fileIds.length + messageIds.length + tools.length === 0) return undefined;
  const [files, messages, isTool] = await Promise.all([
    fileIds.length === 0 ? new Set() : knownFiles(tx, organizationId, sessionId, fileIds),
    messageIds.length === 0 ? new Set() : knownMessages(tx, organizationId, sessionId, messageIds),
    tools.length === 0 ? () => true : toolNames(tx, organizationId, agentId, version),
  ]);
  const errors = [
    ...unknown('fileIds', fileIds, (id) => files.has(id), 'the conversation has no file'),
    ...unknown('messageIds', messageIds, (id) => messages.has(id), 'the conversation has no message'),
    ...unknown('tools', tools, isTool, 'the agent has no tool'),
  ];
  const [first] = errors;
  if (first) throw new ApiError('invalid_request', `${first.path}: ${first.message}.`, { errors });
  const before = leftOutOf(leftOut);
  const added: Omit<LeftOut, 'refusedFiles'> = {
    fileIds: fileIds.filter((id) => !before.fileIds.includes(id)),
    messageIds: messageIds.filter((id) => !before.messageIds.includes(id)),
    tools: tools.filter((name) => !before.tools.includes(name)),
  };
  return Object.values(added).some((names) => names.length > 0) ? added : undefined;
}

function unknown(field: string, names: readonly string[], isKnown: (name: string) => boolean, what: string) {
  return names.flatMap((name, index) =>
    isKnown(name) ? [] : [{ path: `without.${field}[${index}]`, message: `${what} ${JSON.stringify(name)}` }],
  );
}

/** Also files that were deleted, which messages still name. */
async function knownFiles(tx: Tx, organizationId: string, sessionId: string, ids: string[]): Promise<Set<string>> {
  const rows = await tx.query<{ fileId: string }>(sql`
    select distinct n.file_id as "fileId" from (${namedFiles(organizationId, sessionId, { inTools: true })}) n
    where n.file_id = any(${ids}::text[])`);
  return new Set(rows.map(({ fileId }) => fileId));
}

async function knownMessages(tx: Tx, organizationId: string, sessionId: string, ids: string[]): Promise<Set<string>> {
  const rows = await tx.query<{ messageId: string }>(sql`
    select m.message_id as "messageId"
    from (${transcriptSources({ organizationId, sessionId })}) s
    join messages m on m.organization_id = ${organizationId} and ${isOfSource}
    where m.message_id = any(${ids.map((id) => uuidOf('msg', id))}::uuid[])`);
  return new Set(rows.map(({ messageId }) => formatId('msg', messageId)));
}

/** An MCP server's tools are listed only when a turn runs, so its own name, and each that begins with it, counts. */
async function toolNames(tx: Tx, organizationId: string, agentId: string, version: number) {
  const { tools } = await readDefinition(tx, organizationId, agentId, version);
  return (asked: string) =>
    tools.some((tool) => asked === toolNameOf(tool) || (tool.type === 'mcp' && asked.startsWith(`${tool.name}__`)));
}
