// What the turn machine asks of a tool that the service runs itself.
import type { HttpTool } from '@signalbox/contract';

export interface ToolRun {
  organizationId: string;
  environment: string;
  tool: HttpTool;
  input: unknown;
  /** `op_…`, sent as the `Idempotency-Key` of the call. */
  operationId: string;
}

/** What the model is told. `error` is in words that may be shown: it never holds a secret. */
export type ToolOutcome = { output: unknown; error?: undefined } | { error: string; output?: undefined };

/**
 * Runs a call to its end. Never throws but for the signal's reason when it is aborted: whatever goes wrong is an outcome, which
 * the model is told.
 */
export type RunTool = (run: ToolRun, signal: AbortSignal) => Promise<ToolOutcome>;
