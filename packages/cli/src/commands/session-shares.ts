// `signalbox sessions share …`: links by which anyone can read a session.
import { command } from '../command.ts';
import { listOptions, printList, printResult, timeText } from '../print.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import { shown } from '../text.ts';
import { session } from './session-history.ts';

export const share = command({
  name: 'share',
  summary: 'Create a link by which anyone can read the conversation, and print it',
  arguments: session,
  options: {
    title: { type: 'string', value: 'TEXT', about: 'what its page is called' },
    'include-tools': { type: 'boolean', about: 'also show tool calls with their inputs and results' },
    'expires-at': {
      type: 'time',
      direction: 'future',
      about: 'when it expires, such as 2027-01-31T00:00:00Z or 30d; without it, in 7 days',
    },
    ...serviceOptions,
  },
  examples: [['sessions share ses_01k9… --title "Order 1041" --expires-at 2d', 'show a conversation to a colleague']],
  needs: ['sessions:run'],
  operations: ['createSessionShare'],
  async run(input) {
    const { values, args } = input;
    const created = await serviceOf(input).sessions.share(args.session, {
      title: values.title,
      includesTools: values['include-tools'],
      expiresAt: values['expires-at'],
    });
    await printResult(input, created, created.link ?? '');
  },
});

export const shares = command({
  name: 'shares',
  summary: 'List the share links of a session, newest first',
  arguments: session,
  options: { ...listOptions, ...serviceOptions },
  examples: [['sessions shares ses_01k9…', 'who can still read a session']],
  needs: ['sessions:read'],
  operations: ['listSessionShares'],
  run(input) {
    const client = serviceOf(input);
    return printList(input, (page) => client.sessions.shares(input.args.session, page), {
      id: ({ shareId }) => shareId,
      describe: () => [
        { header: 'SHARE', cell: ({ shareId }) => shareId },
        { header: 'TITLE', cell: ({ title }) => shown(title ?? ''), shrinks: true },
        { header: 'TOOLS', cell: ({ includesTools }) => (includesTools ? 'shown' : 'hidden') },
        { header: 'CREATED BY', cell: ({ createdBy }) => shown(createdBy), shrinks: true, optional: true },
        { header: 'EXPIRES', cell: ({ expiresAt }) => timeText(expiresAt, input.terminal) },
      ],
    });
  },
});

export const unshare = command({
  name: 'unshare',
  summary: 'Revoke a share link: it shows nothing from then on',
  arguments: { ...session, share: { about: 'the id of the share link, shr_…' } },
  options: serviceOptions,
  examples: [['sessions unshare ses_01k9… shr_01k9…', 'a link that went too far']],
  needs: ['sessions:run'],
  operations: ['deleteSessionShare'],
  async run(input) {
    const { session: sessionId, share: shareId } = input.args;
    const revoked = await serviceOf(input).sessions.unshare(sessionId, shareId);
    await printResult(input, revoked, `revoked: ${shareId}`);
  },
});
