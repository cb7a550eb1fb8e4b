// Two schedules: one opens a session every weekday at nine in Berlin, the other once, two seconds from now.
//
//   SIGNALBOX_API_KEY=sbk_… npm exec -c 'node examples/schedule.ts'
import './explain.ts';
import { setTimeout as delay } from 'node:timers/promises';
import { type ScheduleRun, Signalbox } from '@signalbox/client';

const client = new Signalbox();

const { agentId } = await client.agents.create({
  name: 'Reporter',
  model: { provider: 'scripted', model: 'reporter', settings: { script: [{ text: 'Nothing new in {{input}}.' }] } },
});
const common = { agentId, environment: 'production' };

const daily = await client.schedules.create({
  ...common,
  input: 'the last day',
  cron: '0 9 * * 1-5',
  timezone: 'Europe/Berlin',
});
console.log(`every weekday, next at ${daily.nextAt}`);

const once = await client.schedules.create({
  ...common,
  input: 'the last hour',
  at: new Date(Date.now() + 2_000).toISOString(),
});

// A run is listed once its session was opened or refused. (With a webhook there would be no need to poll.)
let run: ScheduleRun | undefined;
while (!run) {
  await delay(250);
  [run] = (await client.schedules.runs(once.scheduleId)).data;
}
console.log(`${run.status} on time: ${run.scheduledAt === once.at}`);
if (!run.sessionId) throw new Error(run.error?.message);

for await (const { chunks } of client.sessions.stream(run.sessionId)) {
  for (const chunk of chunks) {
    if (chunk.type === 'message.chunk') process.stdout.write(chunk.delta);
    if (chunk.type === 'session.status') console.log(`\n[${chunk.status}]`);
  }
}

// To keep a schedule for later, pause it instead. Deleting it does not delete the sessions it opened.
for (const { scheduleId } of [daily, once]) await client.schedules.delete(scheduleId);
