// Decides approvals: asks the person at the terminal, or follows the command-line option.
import { type Approval, BadRequestError, type ResolveApproval, type Signalbox } from '@signalbox/client';
import type { PresetDecision } from './options.ts';
import { type Ask, line, row, withPerson } from './terminal.ts';

export interface Person {
  /** Undefined: ask at the terminal. */
  readonly preset: PresetDecision | undefined;
  /** Aborts when the demo is stopped. */
  readonly signal: AbortSignal;
  readonly onInterrupt: () => void;
}

/** Resolves once the service has recorded the decision. */
export async function decide(client: Signalbox, approval: Approval, person: Person): Promise<void> {
  const { operationId } = approval;
  line();
  if (person.preset) {
    line(`  ${questionFor(approval)}${said(person.preset)}`);
    await client.approvals.resolve(operationId, resolutionOf(person.preset, approval));
  } else {
    await withPerson(person, async (ask) => {
      // Ask until the service accepts the decision. It refuses an input that does not match the tool's schema.
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
  const letter = await ask(questionFor(approval), (typed) => letters.exec(typed.slice(0, 1).toLowerCase())?.[0]);
  if (letter === 'y') return resolutionOf({ decision: 'approved' }, approval);
  const amount = letter === 'e' ? await ask('Amount › ', numberIn) : undefined;
  if (amount === undefined) return resolutionOf({ decision: 'denied' }, approval);
  return resolutionOf({ decision: 'approved', amount }, approval);
}

function resolutionOf({ decision, amount }: Omit<PresetDecision, 'option'>, approval: Approval): ResolveApproval {
  const onBehalfOf = 'the person at the terminal';
  if (decision === 'denied') return { decision, onBehalfOf, reason: 'The person at the terminal said no.' };
  if (amount === undefined || !hasAmount(approval)) return { decision, onBehalfOf };
  // An edited input replaces the whole input.
  return { decision, onBehalfOf, input: { ...approval.input, amount } };
}

function questionFor(approval: Approval): string {
  return `Approve? ${hasAmount(approval) ? 'y/n/e(dit)' : 'y/n'} › `;
}

function said({ decision, amount, option }: PresetDecision): string {
  if (decision === 'denied') return `n (${option})`;
  return amount === undefined ? `y (${option})` : `e, with the amount ${amount} (${option})`;
}

function hasAmount(approval: Approval): approval is Approval & { input: { amount: number } } {
  return typeof (approval.input as { amount?: unknown } | null)?.amount === 'number';
}

function numberIn(typed: string): number | undefined {
  return typed !== '' && Number.isFinite(Number(typed)) ? Number(typed) : undefined;
}
