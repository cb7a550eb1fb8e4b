// One operation of a session in full: `signalbox sessions operation`.
import type { OperationDetails } from '@signalbox/client';
import { command } from '../command.ts';
import { type Dollars, printWithDollars } from '../dollars.ts';
import { printRecord, printResult, timeText } from '../print.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import type { Terminal } from '../terminal.ts';
import { shown, shownLines } from '../text.ts';
import { partText } from './message-text.ts';

export const operation = command({
  name: 'operation',
  summary: 'Show a model call or tool call in full: what was sent, what came back, and why it failed',
  arguments: {
    session: { about: 'the id of the session, ses_…' },
    operation: { about: 'the id of the call, op_…, as `sessions turns --json` shows it' },
  },
  options: serviceOptions,
  examples: [
    ['sessions operation ses_01k9… op_01k9…', 'the prompt of a model call'],
    ["signalbox sessions operation ses_01k9… op_01k9… --json | jq -r '.request.body'", 'the request as it was sent'],
  ],
  needs: ['sessions:read', 'agents:read'],
  operations: ['getOperation'],
  async run(input) {
    const client = serviceOf(input);
    const found = await client.sessions.operation(input.args.session, input.args.operation);
    await printResult(input, found, () =>
      printWithDollars(input.terminal, client, (dollars) => printDetails(found, input.terminal, dollars)),
    );
  },
});

async function printDetails(found: OperationDetails, terminal: Terminal, { exact }: Dollars): Promise<void> {
  const { kind, name, status, usage, prompt, response, request, received, approval, attempts } = found;
  const out = terminal.stdout;
  await printRecord(terminal, [
    ['Call', `${kind} ${shown(name)}`],
    ['Status', status],
    ['Error', found.error && shown(found.error)],
    ['Turn', `${found.turn}, step ${found.step}, version ${found.agentVersion} of the agent`],
    ['Started', timeText(found.startedAt, terminal)],
    ['First token', found.firstTokenAt && found.startedAt && took(found.startedAt, found.firstTokenAt)],
    ['Took', found.startedAt && found.endedAt && took(found.startedAt, found.endedAt)],
    ['Tokens', usage && `${usage.inputTokens} in, ${usage.outputTokens} out`],
    ['Cost', usage?.costUsd ? exact(usage.costUsd) : null],
    [
      'Approval',
      approval && `${approval.status}${approval.resolvedBy ? ` by ${shown(approval.resolvedBy.name ?? '')}` : ''}`,
    ],
    ['Child session', found.childSessionId],
    ['Exact', found.exact ? null : found.notes.map(shown).join(' ')],
  ]);
  const section = (title: string, text: string) => out.write(`\n${out.styled('bold', title)}\n${text}\n`);
  for (const { model, error } of attempts) {
    if (error) await section(`Attempt: ${shown(model)}`, `${error.code}: ${shown(error.message)}`);
  }
  if (prompt) {
    await section('Instructions', shownLines(prompt.instructions));
    for (const { role, content } of prompt.messages) await section(role, content.map(partText).join('\n'));
    if (prompt.tools.length > 0) await section('Tools', prompt.tools.map((tool) => shown(tool.name)).join('\n'));
  }
  if (response) {
    if (response.reasoning) await section('Reasoning', shownLines(response.reasoning));
    await section('Response', response.content.map(partText).join('\n'));
  }
  if (request && !prompt) {
    const headers = request.headers.map((header) => `${header.name}: ${shown(header.value)}`);
    await section(
      'Request',
      [`${request.method} ${shown(request.url)}`, ...headers, '', shownLines(request.body ?? '')].join('\n'),
    );
  }
  if (received) {
    const headers = received.headers.map((header) => `${shown(header.name)}: ${shown(header.value)}`);
    await section('Response', [`HTTP ${received.status}`, ...headers, '', shownLines(received.body ?? '')].join('\n'));
  }
  if (kind === 'tool' && status === 'succeeded')
    await section('Output', shownLines(JSON.stringify(found.output, null, 2)));
}

function took(from: string, until: string): string {
  return `${((Date.parse(until) - Date.parse(from)) / 1000).toFixed(2)} s`;
}
