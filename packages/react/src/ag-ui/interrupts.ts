/** Approvals as interrupts of AG-UI, and what answers them. */
import type { Interrupt, ResumeEntry } from '@ag-ui/client';
import type { Signalbox } from '@signalbox/client';
import type { ToolPart } from '@signalbox/client/conversation';

/** What answers an approval. */
const responseSchema: Interrupt['responseSchema'] & object = {
  type: 'object',
  properties: {
    approved: { type: 'boolean' },
    input: { description: 'Replaces the input of the call.' },
    reason: { type: 'string' },
  },
  required: ['approved'],
};

/** The interrupt of a call that waits for approval. */
export function interruptOf({ id: toolCallId, tool: name, input, approval }: ToolPart): Interrupt {
  const { operationId, expiresAt, by } = approval!;
  return {
    id: operationId,
    reason: 'tool_call',
    message: `Approve ${name}?`,
    toolCallId,
    responseSchema,
    ...(expiresAt !== null && { expiresAt }),
    metadata: { tool: name, input, ...(by && { by }) },
  };
}

/** An interrupt that the user has dismissed is a denial: nothing runs without a decision. */
export function decisionOf({ status, payload }: ResumeEntry): Parameters<Signalbox['approvals']['resolve']>[1] {
  const answer = (typeof payload === 'object' && payload !== null ? payload : { approved: payload }) as {
    approved?: unknown;
    input?: unknown;
    reason?: unknown;
  };
  const reason = typeof answer.reason === 'string' && answer.reason !== '' ? { reason: answer.reason } : {};
  if (status !== 'resolved' || answer.approved !== true) return { decision: 'denied', ...reason };
  return { decision: 'approved', ...reason, ...(answer.input !== undefined && { input: answer.input }) };
}
