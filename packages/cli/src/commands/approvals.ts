// `signalbox approvals …`: lists and decides approvals in a terminal.
import type { Approval, ApprovalOutcome, ResolveApproval } from '@signalbox/client';
import { approvalText } from '../approval-text.ts';
import { command, type Input, UsageError } from '../command.ts';
import { listOptions, printResult, printTexts } from '../print.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import { shown } from '../text.ts';

const operation = { operation: { about: 'the id of the tool call, op_…' } } as const;
const several = { operation: { about: 'the ids of one or more tool calls, op_…', many: true } } as const;
const reason = { type: 'string', value: 'TEXT' } as const;
const rules =
  'The first decision counts; a later one fails with exit status 1. If a tool needs several approvers, all of them have to approve the same input, and one denial is final. Several calls get the same decision, each for itself: if one is refused, the others are decided all the same, and the exit status is 1.';

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
    context: { type: 'boolean', about: 'show the last messages before each call' },
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
    const include = input.values.context ? 'context' : undefined;
    const filters = { status, order, environment, agentId, sessionId, include } as const;
    return printTexts(input, (page) => client.approvals.list({ ...filters, ...page }), {
      id: ({ operationId }) => operationId,
      text: approvalText,
    });
  },
});

const get = command({
  name: 'get',
  summary: 'Show an approval with its input, its decisions and the last messages before the call',
  arguments: operation,
  options: serviceOptions,
  examples: [['approvals get op_01k9…', 'read the input before you decide']],
  needs: ['sessions:read'],
  operations: ['getApproval'],
  async run(input) {
    const approval = await serviceOf(input).approvals.get(input.args.operation, { include: 'context' });
    await printResult(input, approval, approvalText(approval).trimEnd());
  },
});

const approve = command({
  name: 'approve',
  summary: 'Approve tool calls: they run',
  details: `${rules} To approve an input that another approver has edited, pass it with --input.`,
  arguments: several,
  options: {
    input: { type: 'json', about: 'run the call with this input instead' },
    reason: { ...reason, about: 'the reason for the decision' },
    session: { type: 'boolean', about: "don't ask again for this tool in this session" },
    ...serviceOptions,
  },
  examples: [
    ['approvals approve op_01k9…', 'let the call run'],
    [`approvals approve op_01k9… --input '{"orderId":"1042","amountCents":1500}' --reason 'Half of it'`, 'with less'],
    [
      'signalbox approvals list --all -q | xargs -n 100 signalbox approvals approve',
      'everything that is pending, after you have read the list',
    ],
  ],
  needs: ['approvals:decide'],
  operations: ['resolveApproval', 'resolveApprovals'],
  run(input) {
    const { reason: why, input: edited, session } = input.values;
    const scope = session ? 'session' : undefined;
    return decide(input, { decision: 'approved', reason: why, input: edited, scope });
  },
});

const deny = command({
  name: 'deny',
  summary: 'Deny tool calls: they do not run, and their agents get the reason',
  details: rules,
  arguments: several,
  options: { reason: { ...reason, about: 'the reason for the decision; the agent sees it' }, ...serviceOptions },
  examples: [["approvals deny op_01k9… --reason 'Was refunded by hand'", 'and tell the agent why']],
  needs: ['approvals:decide'],
  operations: ['resolveApproval', 'resolveApprovals'],
  run: (input) => decide(input, { decision: 'denied', reason: input.values.reason }),
});

export const commands = [list, get, approve, deny];

// As many as one request can decide.
const AT_ONCE = 100;

async function decide(
  input: Input<typeof serviceOptions, typeof several>,
  { input: edited, ...decision }: ResolveApproval,
): Promise<number> {
  const ids = [...new Set(input.args.operation)];
  const { approvals } = serviceOf(input);
  if (ids.length === 1) {
    const body = edited === undefined ? decision : { ...decision, input: edited };
    const approval = await approvals.resolve(ids[0]!, body);
    await printResult(input, approval, decisionText(approval));
    return 0;
  }
  if (edited !== undefined) throw new UsageError('--input is for one call', `${input.command} --help`);
  let refused = 0;
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    for (const result of await approvals.resolveMany({ operationIds: ids.slice(at, at + AT_ONCE), ...decision })) {
      if (result.error) refused += 1;
      await printResult(input, result, resultText(result));
    }
  }
  return refused > 0 ? 1 : 0;
}

function resultText({ operationId, status, progress, error }: ApprovalOutcome): string {
  if (error) return `${operationId}  refused: ${shown(error.detail)} (${error.status} ${error.code})`;
  return `${operationId}  ${status === 'pending' ? `${progress?.approved} of ${progress?.required} approvals` : status}`;
}

function decisionText({ status, progress, name, sessionId }: Approval): string {
  const state = status === 'pending' ? `${progress.approved} of ${progress.required} approvals` : status;
  return `${state}: ${shown(name)} in ${sessionId}`;
}
