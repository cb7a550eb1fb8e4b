// All sessions that match some filters as one file.
//
// It is read in pages, whenever the client has room for the next. No statement is long, no snapshot stays open, and memory use is small,
// however many sessions there are and however slow the client.
import type { Input, ListedSession } from '@signalbox/contract';
import type { PoolContext } from '../../lib/context.ts';
import { csvLine, type ExportedFile, fileOf } from '../../lib/files/exported-file.ts';
import { listSessions } from './list.ts';

const PAGE = 100;

export async function exportSessions(ctx: PoolContext, input: Input<'exportSessions'>): Promise<ExportedFile> {
  const { format = 'jsonl', ...filters } = input;

  async function* read(signal: AbortSignal): AsyncGenerator<string> {
    if (format === 'csv') yield csvLine(Object.keys(csvColumns));
    for (let cursor = ''; !signal.aborted; ) {
      const { data, page } = await listSessions(ctx, { ...filters, limit: PAGE, cursor });
      yield data.map(format === 'csv' ? csvLineOf : (session) => `${JSON.stringify(session)}\n`).join('');
      if (!page.hasMore) return;
      cursor = page.nextCursor;
    }
  }

  return fileOf('sessions', format, read);
}

function csvLineOf(session: ListedSession): string {
  return csvLine(Object.values(csvColumns).map((of) => of(session)));
}

const csvColumns: Record<string, (session: ListedSession) => string | number | null | undefined> = {
  sessionId: ({ sessionId }) => sessionId,
  createdAt: ({ createdAt }) => createdAt,
  endedAt: ({ endedAt }) => endedAt,
  status: ({ status }) => status,
  stopReason: ({ stopReason }) => stopReason,
  errorCode: ({ error }) => error?.code,
  errorMessage: ({ error }) => error?.message,
  agentId: ({ agentId }) => agentId,
  agentVersion: ({ agentVersion }) => agentVersion,
  environment: ({ environment }) => environment,
  endUserId: ({ endUser }) => endUser?.id,
  endUserName: ({ endUser }) => endUser?.name,
  preview: ({ preview }) => preview,
  turns: ({ turn }) => turn,
  modelCalls: ({ usage }) => usage.steps,
  toolCalls: ({ usage }) => usage.toolCalls,
  inputTokens: ({ usage }) => usage.inputTokens,
  outputTokens: ({ usage }) => usage.outputTokens,
  costUsd: ({ usage }) => usage.costUsd,
  workingMs: ({ workingMs }) => workingMs,
  parentSessionId: ({ parentSessionId }) => parentSessionId,
  forkedFromSessionId: ({ forkedFrom }) => forkedFrom?.sessionId,
  metadata: ({ metadata }) => (Object.keys(metadata).length === 0 ? null : JSON.stringify(metadata)),
};
