// The tools that run in this page. A call comes here once it is approved.
import type { SessionMessage, UseSession } from '@signalbox/react';

const tools: Record<string, (input: never) => string | Promise<string>> = {
  // Here you would call your own API. It should accept a repeated call, because the page may be reloaded meanwhile.
  cancel_order: ({ order, refund }: { order: string; refund: string }) =>
    `Order ${order} is cancelled, and ${refund} is on its way back.`,
};

const started = new Set<string>();

/** Runs the calls that wait for a result from this page, each once. */
export function runTools(messages: readonly SessionMessage[], toolResult: UseSession['toolResult']): void {
  for (const part of messages.flatMap((message) => (message.role === 'assistant' ? message.parts : []))) {
    const run = part.type === 'tool' && part.state === 'result' ? tools[part.tool] : undefined;
    if (part.type !== 'tool' || !run || started.has(part.id)) continue;
    started.add(part.id);
    Promise.resolve(part.input as never)
      .then(run)
      .then(
        (output) => toolResult(part.id, { output }),
        (error: unknown) => toolResult(part.id, { error: String(error) }),
      )
      // If the network was down, the next change of the session tries again.
      .then((isStored) => isStored || started.delete(part.id));
  }
}
