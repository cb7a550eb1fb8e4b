/** What the user of a page has answered in a message: decisions on approvals, and results of client tools. */
import type { ToolResult, WaitingFor } from '@signalbox/client';
import { isToolUIPart, type UIMessage } from 'ai';

export interface Answers {
  decisions: { operationId: string; decision: 'approved' | 'denied'; reason?: string }[];
  results: ToolResult[];
}

/** The answers in a message that the session waits for. */
export function answersIn({ parts }: UIMessage, waitingFor: WaitingFor | null): Answers {
  const answers: Answers = { decisions: [], results: [] };
  for (const part of parts) {
    if (!isToolUIPart(part)) continue;
    const { toolCallId } = part;
    if (part.state === 'approval-responded' && waitingFor?.operationIds.includes(part.approval.id)) {
      const { id: operationId, approved, reason } = part.approval;
      const decision = approved ? 'approved' : 'denied';
      answers.decisions.push({ operationId, decision, ...(reason && { reason }) });
    } else if (waitingFor?.toolCallIds.includes(toolCallId)) {
      if (part.state === 'output-available') answers.results.push({ toolCallId, output: part.output ?? null });
      if (part.state === 'output-error')
        answers.results.push({ toolCallId, error: part.errorText || 'The call failed' });
    }
  }
  return answers;
}

/**
 * For `sendAutomaticallyWhen`: the last message has answers, and nothing in its last step is still to be answered. Use it in place of
 * the functions of the AI SDK, which know either approvals or tool results.
 */
export function hasAnswers({ messages }: { messages: UIMessage[] }): boolean {
  const last = messages.at(-1);
  if (last?.role !== 'assistant') return false;
  const step = last.parts.slice(last.parts.findLastIndex(({ type }) => type === 'step-start') + 1).filter(isToolUIPart);
  // The service is responsible for a call with `providerExecuted`, also for the result of a client tool that it has received.
  const isAnswer = (part: (typeof step)[number]) =>
    part.state === 'approval-responded' ||
    (!part.providerExecuted && (part.state === 'output-available' || part.state === 'output-error'));
  const isOpen = (part: (typeof step)[number]) =>
    part.state === 'approval-requested' ||
    part.state === 'input-streaming' ||
    (part.state === 'input-available' && !part.providerExecuted);
  return step.some(isAnswer) && !step.some(isOpen);
}
