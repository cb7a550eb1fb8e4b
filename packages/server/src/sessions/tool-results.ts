// The result of a client tool, which the integrator sends after running the call.
import type { Input, Result } from '@signalbox/contract';
import sql from 'sql-template-tag';
import type { Tx } from '../db/db.ts';
import { messageParts } from '../files/message-files.ts';
import { ApiError, invalidField, notFound } from '../lib/api-error.ts';
import { type Context, inTransaction } from '../lib/context.ts';
import { parseId, uuidOf } from '../lib/ids.ts';
import { isSameJson } from '../lib/json/same-json.ts';
import { recordAwaitedResult } from '../session-rows/awaited-result.ts';
import {
  isFinished,
  type Operation,
  operationColumns,
  resultChunk,
  updateOperation,
} from '../session-rows/operations.ts';
import { addRequester } from '../session-rows/requesters.ts';
import { lockSession, requireOpen, type SessionRow, viewSession } from '../session-rows/session.ts';

/** 404 if the session has no such call; 409 `conflict` if the call awaits no result, or already has another. */
export async function sendToolResult(ctx: Context, input: Input<'sendToolResult'>): Promise<Result<'sendToolResult'>> {
  if ((input.output === undefined) === (input.error === undefined)) {
    throw invalidField(input.output === undefined ? 'output' : 'error', 'give exactly one of output and error');
  }
  return inTransaction(ctx, async (tx, ctx) => {
    const row = await lockSession(tx, ctx.organizationId, uuidOf('ses', input.sessionId));
    const operation = await readToolCall(tx, row.organizationId, row.sessionId, uuidOf('call', input.toolCallId));
    const output = await withFiles(tx, ctx, row, input.output);
    if (isFinished(operation) && isSameResult(operation, { ...input, output })) return { session: viewSession(row) };
    requireOpen(row);
    if (operation.status === 'cancelled')
      throw new ApiError('conflict', 'The call was cancelled together with its turn.');
    if (isFinished(operation)) throw new ApiError('conflict', 'The call has already ended with another result.');
    if (operation.status !== 'awaiting_result') {
      throw new ApiError(
        'conflict',
        'This call needs no result from you: it has no tool.call in the stream yet, or the service runs it.',
      );
    }
    const ended: Operation = {
      ...operation,
      status: input.error === undefined ? 'succeeded' : 'failed',
      output: output ?? null,
      error: input.error ?? null,
    };
    await Promise.all([tx.query(updateOperation(row, ended, ctx.clock.now())), tx.query(addRequester(ctx, row))]);
    const after = await recordAwaitedResult(tx, ctx, row, [resultChunk(ended)], {
      kind: 'tool_result',
      operationId: ended.operationId,
    });
    return { session: viewSession(after) };
  });
}

/** The output with what is known of the files that it names, by itself or in a list; 422 `file_invalid` if there is none. */
async function withFiles(tx: Tx, ctx: Context, row: SessionRow, output: unknown): Promise<unknown> {
  const parts = [output].flat().filter(isFileInput);
  if (parts.length === 0) return output;
  const holder = { ...row, holderId: row.sessionId, field: 'output', caller: ctx };
  const files = await messageParts(tx, holder, parts, ctx.clock.now());
  const byId = new Map(files.map((file) => [file.type === 'file' ? file.fileId : '', file]));
  const named = (value: unknown) => (isFileInput(value) ? byId.get(value.fileId) : value);
  return Array.isArray(output) ? output.map(named) : named(output);
}

/** As in a message: exactly these two fields. Anything else is a value like any other. */
function isFileInput(value: unknown): value is { type: 'file'; fileId: string } {
  if (typeof value !== 'object' || value === null || Object.keys(value).length !== 2) return false;
  const { type, fileId } = value as Record<string, unknown>;
  return type === 'file' && typeof fileId === 'string' && parseId('file', fileId) !== undefined;
}

async function readToolCall(
  tx: Tx,
  organizationId: string,
  sessionId: string,
  operationId: string,
): Promise<Operation> {
  const [operation] = await tx.query<Operation>(sql`
    select ${operationColumns} from operations o
    where organization_id = ${organizationId} and session_id = ${sessionId} and operation_id = ${operationId}
      and kind = 'tool'`);
  if (!operation) throw notFound('tool call in this session');
  return operation;
}

function isSameResult(operation: Operation, result: { output?: unknown; error?: string }): boolean {
  if (operation.status === 'failed') return operation.error === result.error;
  return (
    operation.status === 'succeeded' &&
    result.error === undefined &&
    isSameJson(operation.output ?? null, result.output ?? null)
  );
}
