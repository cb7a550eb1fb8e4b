// `signalbox sessions …`: opens, lists, continues and stops sessions. What was said in them is in session-history.ts.
import { text } from 'node:stream/consumers';
import type { Content, CreateSessionToken, Metadata } from '@signalbox/client';
import { agentNames } from '../agent-names.ts';
import { type Command, command, type Options, UsageError } from '../command.ts';
import { printWithDollars } from '../dollars.ts';
import { printRecord, printResult, timeText } from '../print.ts';
import { retryCommand } from '../retry-text.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import { stateOf } from '../session-state.ts';
import type { Terminal } from '../terminal.ts';
import { counted, shown } from '../text.ts';
import { readDraft, sessionDraft } from './drafts.ts';
import { chat } from './session-chat.ts';
import { chunks, messages, session, turns, watch, watchSession } from './session-history.ts';
import { listCommands } from './session-lists.ts';
import { operation } from './session-operation.ts';
import { share, shares, unshare } from './session-shares.ts';

const get = command({
  name: 'get',
  summary: 'Show a session: what it does or waits for, its usage and its error',
  arguments: session,
  options: serviceOptions,
  examples: [['sessions get ses_01k9…', 'why a session failed']],
  needs: ['sessions:read'],
  operations: ['getSession'],
  async run(input) {
    const { terminal } = input;
    const client = serviceOf(input);
    const found = await client.sessions.get(input.args.session);
    await printResult(input, found, async () => {
      const names = agentNames(client);
      await names.load([found.agentId]);
      const { endUser, usage, budget, error, forkedFrom, leftOut } = found;
      await printWithDollars(terminal, client, ({ exact }) =>
        printRecord(terminal, [
          ['Session', found.sessionId],
          ['Status', stateOf(found)],
          ['Error', error && `${error.code}: ${shown(error.message)}`],
          ['Continue with', error?.retryWithout && shown(retryCommand(found.sessionId, error.retryWithout))],
          [
            'Agent',
            `${names.of(found.agentId)} (${found.agentId}, ${found.draft ? 'a draft' : `version ${found.agentVersion ?? 'none yet'}`})`,
          ],
          ['Environment', found.environment],
          ['End user', endUser && shown(endUser.name ? `${endUser.name} (${endUser.id})` : endUser.id)],
          ['Turn', String(found.turn)],
          ['Cursor', found.cursor],
          ['Usage', `${usage.inputTokens} tokens in, ${usage.outputTokens} out, ${counted(usage.steps, 'model call')}`],
          ['Cost', usage.costUsd === null ? null : exact(usage.costUsd)],
          ['Budget', budget && JSON.stringify(budget)],
          ['Left out', leftOut && [...leftOut.fileIds, ...leftOut.messageIds, ...leftOut.tools].join(', ')],
          ['Metadata', Object.keys(found.metadata).length > 0 ? shown(JSON.stringify(found.metadata)) : ''],
          ['Parent', found.parentSessionId],
          ['Forked from', forkedFrom && `${forkedFrom.sessionId} after turn ${forkedFrom.turn}`],
          ['Created', timeText(found.createdAt, terminal)],
          ['Ended', timeText(found.endedAt, terminal)],
        ]),
      );
    });
  },
});

const open = command({
  name: 'open',
  summary: 'Open a session, and print its id; with --watch, show what it does then',
  arguments: { agent: { about: 'the id of the agent, agt_…' } },
  options: {
    environment: { type: 'string', value: 'NAME', required: true, about: 'the environment it runs in' },
    input: { type: 'string', value: 'TEXT', about: 'its first message; - is standard input' },
    file: { type: 'string', value: 'FILE', multiple: true, about: 'a file to send with the message' },
    'agent-version': { type: 'integer', min: 1, about: 'always use this version of the agent' },
    'end-user': { type: 'string', value: 'ID', about: 'the end user it is for: the id in your system' },
    'end-user-name': { type: 'string', value: 'NAME', about: 'the name of the end user, for the console' },
    metadata: { type: 'json', about: 'values of your own, such as {"customer":"17"}' },
    'max-cost-usd': { type: 'number', about: 'its budget in US dollars' },
    'max-tokens': { type: 'integer', min: 1, about: 'its budget in tokens' },
    'max-steps': { type: 'integer', min: 1, about: 'its budget in model calls' },
    'close-on-idle': { type: 'boolean', about: 'complete it when its turn ends and no message is queued' },
    watch: { type: 'boolean', about: 'show what it does until it is idle or has ended' },
    ...serviceOptions,
  },
  examples: [
    ['sessions open agt_01k9… --environment production --input "Where is order 1042?"', 'start a turn'],
    ['sessions open agt_01k9… --environment staging --input - --close-on-idle --watch < task.txt', 'run a task'],
  ],
  needs: ['sessions:run', 'sessions:read'],
  operations: ['openSession', 'getSession', 'streamSession'],
  async run(input) {
    const { values, args, terminal } = input;
    const { 'end-user': endUserId, 'end-user-name': name, 'max-cost-usd': maxCostUsd, file } = values;
    const budget = withoutUndefined({ maxCostUsd, maxTokens: values['max-tokens'], maxSteps: values['max-steps'] });
    const client = serviceOf(input);
    const opened = await client.sessions.open({
      agentId: args.agent,
      agentVersion: values['agent-version'],
      environment: values.environment,
      input: await contentOf(values.input, file, terminal),
      metadata: values.metadata as Metadata | undefined,
      endUser: endUserId === undefined ? undefined : { id: endUserId, name },
      budget: Object.keys(budget).length > 0 ? budget : undefined,
      closeOnIdle: values['close-on-idle'],
    });
    await printResult(input, opened, opened.sessionId);
    if (values.watch)
      await watchSession(client, opened, { cursor: null, json: values.json, untilIdle: true, terminal });
  },
});

const update = command({
  name: 'update',
  summary: 'Replace the metadata of a session',
  arguments: session,
  options: { metadata: { type: 'json', required: true, about: 'values of your own' }, ...serviceOptions },
  examples: [[`sessions update ses_01k9… --metadata '{"customer":"17"}'`, 'to find it again']],
  needs: ['sessions:run'],
  operations: ['updateSession'],
  async run(input) {
    const change = { metadata: input.values.metadata as Metadata };
    const updated = await serviceOf(input).sessions.update(input.args.session, change);
    await printResult(input, updated, `updated: ${updated.sessionId}`);
  },
});

const remove = command({
  name: 'delete',
  summary: 'Delete an ended session for good, with its child sessions and all their data',
  arguments: session,
  options: serviceOptions,
  examples: [['sessions delete ses_01k9…', 'delete a session']],
  needs: ['sessions:run'],
  operations: ['deleteSession'],
  async run(input) {
    const deleted = await serviceOf(input).sessions.delete(input.args.session);
    await printResult(input, deleted, `deleted: ${input.args.session}`);
  },
});

const sendResult = command({
  name: 'send-result',
  summary: 'Send the result of a tool call that your program runs',
  arguments: {
    ...session,
    call: { about: 'the id of the tool call, call_…, from `waitingFor` of the session or a `tool.call` chunk' },
  },
  options: {
    output: { type: 'json', about: 'what the call returned' },
    error: { type: 'string', about: 'why it failed; the model gets this text' },
    ...serviceOptions,
  },
  examples: [[`sessions send-result ses_01k9… call_01k9… --output '{"status":"shipped"}'`, 'send a result by hand']],
  needs: ['sessions:run'],
  operations: ['sendToolResult'],
  async run(input) {
    const { args, values, command: fullName } = input;
    const { output, error } = values;
    if ((output === undefined) === (error === undefined))
      throw new UsageError(`${fullName}: needs --output or --error`, `${fullName} --help`);
    const result = { toolCallId: args.call, ...(error === undefined ? { output } : { error }) };
    const changed = await serviceOf(input).sessions.sendToolResult(args.session, result);
    await printResult(input, changed, `${changed.sessionId} is ${stateOf(changed)}`);
  },
});

const createToken = command({
  name: 'create-token',
  summary: 'Create a token for the browser of the end user, for this session only',
  arguments: session,
  options: {
    scopes: { type: 'list', value: 'read,send,decide', required: true, about: 'what it can do' },
    'expires-in-seconds': { type: 'integer', min: 1, about: 'how long it is valid (3600)' },
    ...serviceOptions,
  },
  examples: [['sessions create-token ses_01k9… --scopes read,send', 'try a chat page']],
  needs: ['sessions:run'],
  operations: ['createSessionToken'],
  async run(input) {
    const { values, args } = input;
    const scopes = values.scopes as CreateSessionToken['scopes'];
    const request = { scopes, expiresInSeconds: values['expires-in-seconds'] };
    const created = await serviceOf(input).sessions.createToken(args.session, request);
    await printResult(input, created, created.token ?? '');
  },
});

const send = command({
  name: 'send',
  summary: 'Send a message; it waits for the current turn to end',
  arguments: { ...session, text: { about: 'the message; - is standard input' } },
  options: {
    now: { type: 'boolean', about: 'stop the current turn and continue with this message' },
    file: { type: 'string', value: 'FILE', multiple: true, about: 'a file to send with the message' },
    ...serviceOptions,
  },
  examples: [['sessions send ses_01k9… "And the second order?"', 'continue a conversation']],
  needs: ['sessions:run'],
  operations: ['sendMessage'],
  async run(input) {
    const { values, args } = input;
    const content = (await contentOf(args.text, values.file, input.terminal)) ?? '';
    const message = { content, ...(values.now && { onBusy: 'steer' as const }) };
    const sent = await serviceOf(input).sessions.sendMessage(args.session, message);
    await printResult(input, sent, `Sent ${sent.messageId}. The session is ${stateOf(sent.session)}`);
  },
});

const fork = command({
  name: 'fork',
  summary: 'Open a session that continues this one after one of its turns',
  arguments: session,
  options: {
    'at-turn': { type: 'integer', about: 'the last turn that it inherits; 0: none (the last finished turn)' },
    input: { type: 'string', value: 'TEXT', about: 'the next message' },
    'agent-version': { type: 'integer', about: 'always use this version of the agent' },
    draft: { type: 'string', value: 'FILE', about: 'a draft to continue with, as for agents try' },
    ...serviceOptions,
  },
  examples: [['sessions fork ses_01k9… --at-turn 2 --input "Try it with a discount"', 'try another way from turn 2']],
  needs: ['sessions:run'],
  operations: ['forkSession'],
  async run(input) {
    const { 'at-turn': atTurn, 'agent-version': agentVersion, input: text, draft: file } = input.values;
    const draft = file === undefined ? undefined : await readDraft(file, input.terminal);
    const { session: sessionId } = input.args;
    const forked = await serviceOf(input).sessions.fork(sessionId, { atTurn, agentVersion, draft, input: text });
    const words = `Opened ${forked.sessionId}, which continues ${sessionId} after turn ${forked.forkedFrom!.turn}. It is ${stateOf(forked)}`;
    await printResult(input, forked, words);
  },
});

const retry = command({
  name: 'retry',
  summary: 'Continue the last turn, if it failed',
  arguments: session,
  options: {
    ...serviceOptions,
    'without-file': { type: 'string', value: 'FILE', multiple: true, about: 'leave this file out from now on' },
    'without-message': {
      type: 'string',
      value: 'MESSAGE',
      multiple: true,
      about: 'leave this message out from now on',
    },
    'without-tool': { type: 'string', value: 'TOOL', multiple: true, about: 'leave this tool out from now on' },
  } satisfies Options,
  examples: [
    ['sessions retry ses_01k9…', 'continue the last turn, if it failed'],
    ['sessions retry ses_01k9… --without-file file_01k9…', 'a provider refuses a file'],
  ],
  needs: ['sessions:run'],
  operations: ['retrySession'],
  async run(input) {
    const { 'without-file': fileIds, 'without-message': messageIds, 'without-tool': tools } = input.values;
    const without = withoutUndefined({ fileIds, messageIds, tools });
    const retried = await serviceOf(input).sessions.retry(
      input.args.session,
      Object.keys(without).length === 0 ? {} : { without },
    );
    await printResult(input, retried, `${retried.sessionId} is ${stateOf(retried)}`);
  },
});

type Action = 'interrupt' | 'compact' | 'close' | 'cancel';

/** A command that changes what a session does, and prints what it does then. */
function acting(name: Action, summary: string): Command {
  return command({
    name,
    summary,
    arguments: session,
    options: serviceOptions satisfies Options,
    examples: [[`sessions ${name} ses_01k9…`, summary.toLowerCase()]],
    needs: ['sessions:run'],
    operations: [`${name}Session`],
    async run(input) {
      const changed = await serviceOf(input).sessions[name](input.args.session);
      await printResult(input, changed, `${changed.sessionId} is ${stateOf(changed)}`);
    },
  });
}

async function contentOf(
  given: string | undefined,
  files: readonly string[] | undefined,
  { stdin }: Terminal,
): Promise<Content | undefined> {
  const content = given === '-' ? (await text(stdin)).trimEnd() : given;
  if (!files) return content;
  const parts = files.map((fileId) => ({ type: 'file' as const, fileId }));
  return content === undefined ? parts : [{ type: 'text', text: content }, ...parts];
}

function withoutUndefined<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>;
}

export const commands = [
  ...listCommands,
  get,
  sessionDraft,
  open,
  chat,
  watch,
  send,
  messages,
  turns,
  operation,
  chunks,
  fork,
  share,
  shares,
  unshare,
  acting('interrupt', 'Stop the current turn'),
  retry,
  acting('compact', 'Summarize the messages of an idle session for its model'),
  acting('close', 'Complete the session after the current turn and queued messages'),
  acting('cancel', 'End the session now'),
  update,
  remove,
  sendResult,
  createToken,
];
