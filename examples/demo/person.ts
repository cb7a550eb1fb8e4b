// The person who is asked before a tool with an effect runs: at the terminal, or in the words of the command line.
import { type Approval, BadRequestError, type ResolveApproval, type Signalbox } from '@signalbox/client';
import type { Answer } from './options.ts';
import { type Ask, line, row, withPerson } from './terminal.ts';

export interface Person {
  /** Undefined: the person at the terminal decides. */
  readonly answer: Answer | undefined;
  /** Aborted when the demo is to stop. */
  readonly signal: AbortSignal;
  readonly onInterrupt: () => void;
}

/** Resolves when the service has the decision. */
export async function decide(client: Signalbox, approval: Approval, person: Person): Promise<void> {
  const { operationId } = approval;
  line();
  if (person.answer) {
    line(`  ${questionFor(approval)}${said(person.answer)}`);
    await client.approvals.resolve(operationId, resolutionOf(person.answer, approval));
  } else {
    await withPerson(person, async (ask) => {
      // What the tool's schema does not allow is refused by the service.
      while (!(await resolved(client, operationId, await askFor(approval, ask))));
    });
  }
  line();
}

async function resolved(client: Signalbox, operationId: string, resolution: ResolveApproval): Promise<boolean> {
  try {
    await client.approvals.resolve(operationId, resolution);
    return true;
  } catch (error) {
    if (!(error instanceof BadRequestError)) throw error;
    row('refused', error.detail);
    return false;
  }
}

async function askFor(approval: Approval, ask: Ask): Promise<ResolveApproval> {
  const letters = hasAmount(approval) ? /^[yne]$/ : /^[yn]$/;
  const letter = await ask(questionFor(approval), (answer) => letters.exec(answer.slice(0, 1).toLowerCase())?.[0]);
  if (letter === 'y') return resolutionOf({ decision: 'approved' }, approval);
  const amount = letter === 'e' ? await ask('What amount? › ', numberIn) : undefined;
  if (amount === undefined) return resolutionOf({ decision: 'denied' }, approval);
  return resolutionOf({ decision: 'approved', amount }, approval);
}

function resolutionOf({ decision, amount }: Omit<Answer, 'option'>, approval: Approval): ResolveApproval {
  const onBehalfOf = 'the person at the terminal';
  if (decision === 'denied') return { decision, onBehalfOf, reason: 'The person at the terminal said no.' };
  if (amount === undefined || !hasAmount(approval)) return { decision, onBehalfOf };
  // An edited input is the whole of it.
  return { decision, onBehalfOf, input: { ...approval.input, amount } };
}

function questionFor(approval: Approval): string {
  return `Shall it run? ${hasAmount(approval) ? 'y/n/e(dit)' : 'y/n'} › `;
}

function said({ decision, amount, option }: Answer): string {
  if (decision === 'denied') return `n (${option})`;
  return amount === undefined ? `y (${option})` : `e, with the amount ${amount} (${option})`;
}

function hasAmount(approval: Approval): approval is Approval & { input: { amount: number } } {
  return typeof (approval.input as { amount?: unknown } | null)?.amount === 'number';
}

function numberIn(answer: string): number | undefined {
  return answer !== '' && Number.isFinite(Number(answer)) ? Number(answer) : undefined;
}
