// Shows pending approvals at the terminal, oldest first, and lets the user decide each with a key.
//
//   SIGNALBOX_API_KEY=sbk_… npm exec -c 'node examples/approval-bot/bot.ts'
//
// Its API key has the scopes `approvals:decide` and `sessions:read`, so it can neither run an agent nor change one. For a chat
// instead of a terminal, replace `ask`.
import '../explain.ts';
import { userInfo } from 'node:os';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { type Approval, type ResolveApproval, Signalbox, SignalboxError } from '@signalbox/client';

const { POLL_SECONDS = '2', USER_NAME = userInfo().username } = process.env;
const client = new Signalbox();

const stop = new AbortController();
const lines = createInterface({ input: process.stdin });
lines.once('close', () => stop.abort());
process.once('SIGINT', () => stop.abort());

// Left to others until the program starts again.
const skipped = new Set<string>();

console.log('Waiting for approvals. Ctrl-C ends.');
while (!stop.signal.aborted) {
  const approval = await nextApproval();
  if (approval) await decide(approval);
  else await pause();
}
lines.close();

/** The oldest pending approval that this key may decide. */
async function nextApproval(): Promise<Approval | undefined> {
  for await (const approval of client.approvals.list({ status: 'pending' })) {
    // The agent can leave it to others: to people, to certain roles, to anyone but the key that opened the session.
    if (!approval.refusal && !skipped.has(approval.operationId)) return approval;
  }
  return undefined;
}

async function decide({ operationId, name, input, sessionId, environment }: Approval): Promise<void> {
  console.log(`\n${printable(name)} ${printable(JSON.stringify(input))}\n  ${environment}, ${sessionId}`);
  console.log('  a: approve   d REASON: deny   s: skip');
  const line = await ask(operationId);
  if (line === undefined) return;
  const [, key, reason = ''] = /^([ads])\b\s*(.*)$/i.exec(line) ?? [];
  if (key === 's') skipped.add(operationId);
  if (key === 'a') await resolve(operationId, { decision: 'approved' });
  if (key === 'd') await resolve(operationId, { decision: 'denied', ...(reason && { reason }) });
}

/** The next line of the user; undefined if the approval has ended meanwhile, or the program does. */
async function ask(operationId: string): Promise<string | undefined> {
  const done = new AbortController();
  const typed = new Promise<string>((resolve) => {
    lines.once('line', resolve);
    done.signal.addEventListener('abort', () => lines.off('line', resolve));
  });
  try {
    return await Promise.race([typed, ended(operationId, done.signal)]);
  } finally {
    done.abort();
  }
}

/** Resolves once the approval is no longer pending, and prints its result. */
async function ended(operationId: string, done: AbortSignal): Promise<undefined> {
  while (!done.aborted && !stop.signal.aborted) {
    await pause(done);
    if (done.aborted || stop.signal.aborted) return;
    const { status, resolvedBy } = await client.approvals.get(operationId);
    if (status === 'pending') continue;
    console.log(`  ${status}${resolvedBy ? ` by ${printable(resolvedBy.onBehalfOf ?? resolvedBy.name)}` : ''}`);
    return;
  }
}

async function resolve(operationId: string, resolution: ResolveApproval): Promise<void> {
  try {
    const { status, progress } = await client.approvals.resolve(operationId, { ...resolution, onBehalfOf: USER_NAME });
    const isPending = status === 'pending';
    console.log(isPending ? `  approved by ${progress.approved} of ${progress.required}` : `  ${status}`);
    if (isPending) skipped.add(operationId);
  } catch (error) {
    // Someone was faster, or the time is over.
    if (!(error instanceof SignalboxError) || error.status !== 409) throw error;
    console.log(`  ${error.detail}`);
  }
}

async function pause(done?: AbortSignal): Promise<void> {
  const signal = done ? AbortSignal.any([done, stop.signal]) : stop.signal;
  await setTimeout(Number(POLL_SECONDS) * 1_000, undefined, { signal }).catch(() => undefined);
}

/** Names and inputs come from a model: a terminal must not execute what is in them. */
function printable(text: string): string {
  return text.replaceAll(/\p{C}/gu, '�');
}
