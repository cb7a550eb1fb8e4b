// Sessions that open by themselves: every working day at nine in Berlin, and once, two seconds from now.
//
//   SIGNALBOX_API_KEY=sbk_… npm exec -c 'node examples/schedule.ts'
import { setTimeout as delay } from 'node:timers/promises';
import { type ScheduleRun, Signalbox } from '@signalbox/client';

const client = new Signalbox({
  apiKey: process.env.SIGNALBOX_API_KEY ?? '',
  baseUrl: process.env.SIGNALBOX_URL ?? 'http://127.0.0.1:4500',
});

const { agentId } = await client.agents.create({
  name: 'Reporter',
  model: { provider: 'scripted', model: 'reporter', settings: { script: [{ text: 'Nothing new in {{input}}.' }] } },
});
const of = { agentId, environment: 'production' };

const daily = await client.schedules.create({
  ...of,
  input: 'the last day',
  cron: '0 9 * * 1-5',
  timezone: 'Europe/Berlin',
});
console.log(`every working day, next at ${daily.nextAt}`);

const once = await client.schedules.create({
  ...of,
  input: 'the last hour',
  at: new Date(Date.now() + 2_000).toISOString(),
});

// A run says what became of an occurrence, as soon as it has. (A webhook would tell without asking.)
let run: ScheduleRun | undefined;
while (!run) {
  await delay(250);
  [run] = (await client.schedules.runs(once.scheduleId)).data;
}
console.log(`${run.status} at its time: ${run.scheduledAt === once.at}`);
if (!run.sessionId) throw new Error(run.error?.message);

for await (const { chunks } of client.sessions.stream(run.sessionId)) {
  for (const chunk of chunks) {
    if (chunk.type === 'message.chunk') process.stdout.write(chunk.delta);
    if (chunk.type === 'session.status') console.log(`\n[${chunk.status}]`);
  }
}

// Paused, it would stay for later; the Sessions that it opened stay in any case.
for (const { scheduleId } of [daily, once]) await client.schedules.delete(scheduleId);
