// Whether an agent's model takes the files of a message. A fallback that does not take them gets a description of each.
import { countFiles, type FilePart, type MessagePart, whyNotSupported } from '@signalbox/contract';
import { readDefinition } from '../agents/read-definition.ts';
import type { Queryable } from '../db/db.ts';
import { ApiError } from '../lib/api-error.ts';

/** 422 `file_not_taken` for files that the model is known not to take. `field`: the name of the field with the content. */
export async function requireSupportedFiles(
  db: Queryable,
  agent: { organizationId: string; agentId: string; version: number },
  field: string,
  content: readonly MessagePart[] | null,
): Promise<void> {
  if (!content?.some(({ type }) => type === 'file')) return;
  const { model } = await readDefinition(db, agent.organizationId, agent.agentId, agent.version);
  const count = countFiles(model.provider);
  const seen = new Set<string>();
  const whyNot = (file: FilePart): string | undefined => {
    const why = whyNotSupported(model, file);
    if (why !== undefined || seen.has(file.fileId)) return why;
    seen.add(file.fileId);
    const most = count(file.mediaType);
    return most === undefined
      ? undefined
      : `the model ${model.provider}/${model.model ?? ''} takes at most ${most} at once`;
  };
  const errors = content.flatMap((part, index) => {
    const why = part.type === 'file' ? whyNot(part) : undefined;
    return why === undefined ? [] : [{ path: `${field}[${index}]`, message: why }];
  });
  const [first] = errors;
  if (first) throw new ApiError('file_not_taken', `${first.path}: ${first.message}.`, { errors });
}
