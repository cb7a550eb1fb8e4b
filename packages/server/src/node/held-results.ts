// The memory that the results of running calls take (lib/memory.ts): from before a result is read until it is stored.

import { formatId } from '../lib/ids.ts';
import { type HeldMemory, holdMemory } from '../lib/memory.ts';
import type { Operation } from '../session-rows/operations.ts';
import type { RunTool } from '../tools/tool/tool.ts';
import { withFileStorage } from './save-files.ts';
import type { TurnContext } from './turn-context.ts';

/** Files that calls return are stored, too. */
export function withHeldResults(context: TurnContext, run: RunTool): RunTool {
  const { platform, session } = context;
  const runAndSave = withFileStorage(context, run);
  const results = new Map<string, HeldMemory>();
  context.heldResults = results;
  return (call, signal) => {
    const held = holdMemory(platform.memory, session.row.organizationId, signal);
    results.set(call.operationId, held);
    return runAndSave({ ...call, held }, signal);
  };
}

export function releaseResult({ heldResults }: TurnContext, { operationId }: Operation): void {
  const id = formatId('op', operationId);
  heldResults?.get(id)?.release();
  heldResults?.delete(id);
}

/** Releases the results of a turn that is not running any more. */
export function releaseResults({ heldResults }: TurnContext): void {
  for (const held of heldResults?.values() ?? []) held.release();
  heldResults?.clear();
}
