// `signalbox trigger`: causes an event for a webhook receiver to receive, by a real session of a scripted agent.
import type { Signalbox } from '@signalbox/client';
import { CommandError, command } from '../command.ts';
import { environmentFor, environmentOption } from '../environment.ts';
import { envelopeText } from '../listening/envelope-text.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import { agentNameOf, type TriggerEvent, triggerEvents } from '../trigger-events.ts';

const names = Object.keys(triggerEvents);

const trigger = command({
  name: '',
  summary: 'Trigger a test event with a real session of a scripted agent',
  details: [
    'The events are sent like the events of any session: to the webhook subscription of the environment, to `signalbox listen` and to streams. ' +
      'The agent needs no model key and calls nothing. It is created once for each event, and used again.',
    ...names.map((name) => `${name}: ${triggerEvents[name]!.about}`),
  ].join('\n\n'),
  arguments: { event: { about: 'the event to cause' } },
  options: {
    environment: environmentOption,
    ...serviceOptions,
  },
  examples: [['trigger session.completed --environment staging', 'what a receiver gets of a session that completes']],
  needs: ['agents:read', 'agents:write', 'sessions:run', 'sessions:read', 'approvals:decide'],
  operations: ['listAgents', 'createAgent', 'openSession', 'streamSession', 'resolveApproval'],
  async run(input) {
    const { values, args, terminal } = input;
    const event = triggerEvents[args.event];
    if (!event) throw new CommandError(`There is no event "${args.event}" to trigger; there are ${names.join(', ')}.`);
    const client = serviceOf(input);
    const environment = await environmentFor(input, client);
    const agentId = await agentOf(client, args.event, event);
    const session = await client.sessions.open({
      agentId,
      environment,
      input: `Test of ${args.event}`,
      closeOnIdle: event.closeOnIdle,
      metadata: { trigger: args.event },
    });
    const { sessionId } = session;
    if (!values.json) await terminal.stderr.write(`Opened ${sessionId} in "${environment}".\n`);
    for await (const envelope of client.sessions.stream(sessionId)) {
      if (values.json) await terminal.stdout.write(`${JSON.stringify(envelope)}\n`);
      else await terminal.stdout.write(`${envelopeText(envelope)}\n`);
      for (const chunk of envelope.chunks) {
        if (event.denies && chunk.type === 'approval.requested')
          await client.approvals.deny(chunk.operationId, { reason: 'A test' });
      }
      if (envelope.chunks.some((chunk) => event.causes(chunk))) break;
    }
    if (!values.json && !event.closeOnIdle)
      await terminal.stderr.write(`The session stays open. To end it: signalbox sessions cancel ${sessionId}\n`);
  },
});

export const commands = [trigger];

/** The agent that an earlier call created, if what it does has not been changed. */
async function agentOf(client: Signalbox, name: string, { script, tools = [] }: TriggerEvent): Promise<string> {
  for await (const agent of client.agents.list({ limit: 100 })) {
    if (agent.name === agentNameOf(name) && JSON.stringify(agent.model?.settings?.script) === JSON.stringify(script))
      return agent.agentId;
  }
  const { agentId } = await client.agents.create({
    name: agentNameOf(name),
    description: 'Created by `signalbox trigger`. It is scripted: it needs no model, and its tools do nothing.',
    model: { provider: 'scripted', model: 'trigger', settings: { script } },
    tools,
  });
  return agentId;
}
