// `signalbox approvals …`: lists and decides approvals in a terminal.
import type { Approval, ResolveApproval } from '@signalbox/client';
import { approvalText } from '../approval-text.ts';
import { command, type Input } from '../command.ts';
import { listOptions, printResult, printTexts } from '../print.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import { shown } from '../text.ts';

const operation = { operation: { about: 'the id of the tool call, op_…' } } as const;
const reason = { type: 'string', value: 'TEXT' } as const;
const rules =
  'The first decision counts; a later one fails with exit status 1. If a tool needs several approvers, all of them have to approve the same input, and one denial is final.';

const list = command({
  name: 'list',
  summary: 'List pending approvals with their input, oldest first',
  options: {
    status: {
      type: 'string',
      value: 'STATUS',
      choices: ['pending', 'approved', 'denied', 'expired', 'cancelled'],
      about: 'instead of pending ones; newest first',
    },
    environment: { type: 'string', value: 'NAME', about: 'only this environment' },
    agent: { type: 'string', value: 'AGENT', about: 'only this agent' },
    'session-id': { type: 'string', value: 'SESSION', about: 'only this session' },
    ...listOptions,
    ...serviceOptions,
  },
  examples: [
    ['approvals list', 'what waits for a decision'],
    ['approvals list --status denied --limit 5', 'the last denials'],
  ],
  needs: ['sessions:read'],
  operations: ['listApprovals'],
  run(input) {
    const { status = 'pending', environment, agent: agentId, 'session-id': sessionId } = input.values;
    const client = serviceOf(input);
    const order = status === 'pending' ? 'asc' : 'desc';
    const filters = { status, order, environment, agentId, sessionId } as const;
    return printTexts(input, (page) => client.approvals.list({ ...filters, ...page }), {
      id: ({ operationId }) => operationId,
      text: approvalText,
    });
  },
});

const get = command({
  name: 'get',
  summary: 'Show an approval with its input and its decisions',
  arguments: operation,
  options: serviceOptions,
  examples: [['approvals get op_01k9…', 'read the input before you decide']],
  needs: ['sessions:read'],
  operations: ['getApproval'],
  async run(input) {
    const approval = await serviceOf(input).approvals.get(input.args.operation);
    await printResult(input, approval, approvalText(approval).trimEnd());
  },
});

const approve = command({
  name: 'approve',
  summary: 'Approve a tool call: it runs',
  details: `${rules} To approve an input that another approver has edited, pass it with --input.`,
  arguments: operation,
  options: {
    input: { type: 'json', about: 'run the call with this input instead' },
    reason: { ...reason, about: 'the reason for the decision' },
    session: { type: 'boolean', about: "don't ask again for this tool in this session" },
    ...serviceOptions,
  },
  examples: [
    ['approvals approve op_01k9…', 'let the call run'],
    [`approvals approve op_01k9… --input '{"orderId":"1042","amountCents":1500}' --reason 'Half of it'`, 'with less'],
  ],
  needs: ['approvals:decide'],
  operations: ['resolveApproval'],
  run(input) {
    const { reason: why, input: edited, session } = input.values;
    const scope = session ? 'session' : undefined;
    return decide(input, { decision: 'approved', reason: why, input: edited, scope });
  },
});

const deny = command({
  name: 'deny',
  summary: 'Deny a tool call: it does not run, and the agent gets the reason',
  details: rules,
  arguments: operation,
  options: { reason: { ...reason, about: 'the reason for the decision; the agent sees it' }, ...serviceOptions },
  examples: [["approvals deny op_01k9… --reason 'Was refunded by hand'", 'and tell the agent why']],
  needs: ['approvals:decide'],
  operations: ['resolveApproval'],
  run: (input) => decide(input, { decision: 'denied', reason: input.values.reason }),
});

export const commands = [list, get, approve, deny];

async function decide(input: Input<typeof serviceOptions, typeof operation>, decision: ResolveApproval): Promise<void> {
  const approval = await serviceOf(input).approvals.resolve(input.args.operation, decision);
  await printResult(input, approval, decisionText(approval));
}

function decisionText({ status, progress, name, sessionId }: Approval): string {
  const state = status === 'pending' ? `${progress.approved} of ${progress.required} approvals` : status;
  return `${state}: ${shown(name)} in ${sessionId}`;
}
