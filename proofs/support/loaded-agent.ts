// The agent of the load: what it says and which tools it calls, in a node or in a worker, and how its sessions are opened.
import type { CreateAgent, CreateSchedule, Schedule, Signalbox, Turn } from '@signalbox/client';
import type { ToolServer } from './tool-server.ts';

/** Resolves with the id of the session. */
export type Opening = (client: Signalbox, agentId: string, input: string) => Promise<string>;

/** The steps of its first turn; every later turn is the last one alone. */
const steps = [
  { text: 'one two three four five six ', tools: ['pay', 'look'] },
  { text: 'seven eight nine ten eleven twelve ', tools: ['pay', 'look', 'refund'] },
  { text: 'and the end.', tools: [] },
];

const environment = 'production';
// In the future when the request arrives, on a machine that may be slow.
const SCHEDULED_IN_MS = 3_000;
const POLL_MS = 200;

export function isTextOfTurn(turn: number, text: string): boolean {
  return text === (turn === 1 ? steps.map((step) => step.text).join('') : steps.at(-1)!.text);
}

export function agentWith({ tool }: ToolServer): CreateAgent {
  const script = steps.map(({ text, tools }) => ({
    text,
    tokenDelayMs: 20,
    toolCalls: tools.map((name) => ({ name })),
  }));
  return {
    name: 'Loaded',
    model: { provider: 'scripted', model: 'any', settings: { script } },
    tools: [tool('pay'), tool('look', { idempotent: true }), tool('refund', { approval: 'always' })],
  };
}

export const openByRequest: Opening = async (client, agentId, input) =>
  (await client.sessions.open({ agentId, environment, input })).sessionId;

export const openBySchedule: Opening = async (client, agentId, input) => {
  const { scheduleId } = await scheduleSoon(client, { agentId, environment, input, closeOnIdle: false });
  for (;;) {
    const { lastRun } = await client.schedules.get(scheduleId);
    if (lastRun?.sessionId) return lastRun.sessionId;
    if (lastRun) throw new Error(`The run of ${scheduleId} is ${lastRun.status}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
};

async function scheduleSoon(
  client: Signalbox,
  schedule: Pick<CreateSchedule, 'agentId' | 'environment' | 'input' | 'closeOnIdle'>,
): Promise<Schedule> {
  for (;;) {
    const at = new Date(Date.now() + SCHEDULED_IN_MS).toISOString();
    try {
      return await client.schedules.create({ ...schedule, at });
    } catch (error) {
      // The time passed while the node was down and the client retried.
      if ((error as { status?: number }).status !== 400) throw error;
    }
  }
}

/** Runs workers, one with each client. `open` opens a session that they run. */
export async function startWorkers(
  clients: readonly Signalbox[],
  agent: CreateAgent,
): Promise<{ open: Opening; stop(): Promise<void> }> {
  const queue = 'load';
  const { agentId } = await clients[0]!.agents.create({ ...agent, model: { provider: 'worker', queue } });
  const stopping = new AbortController();
  const running = clients.map((client) =>
    client.workers.run({ queue, signal: stopping.signal, onTurn: runTurn, graceMs: 0 }),
  );
  return {
    open: (client, _, input) => openByRequest(client, agentId, input),
    async stop() {
      stopping.abort();
      await Promise.all(running);
    },
  };
}

/** Called again if the turn was lost in between: continues after the steps that are in its messages. */
async function runTurn(turn: Turn): Promise<void> {
  for (;;) {
    const { messages } = turn;
    const asked = messages.findLastIndex(({ role }) => role === 'user');
    const isFirst = messages.filter(({ role }) => role === 'user').length === 1;
    const done = messages.slice(asked).filter(({ role }) => role === 'assistant').length;
    const { text, tools } = steps[isFirst ? done : steps.length - 1]!;
    for (const word of text.match(/\S+\s*/g)!) await turn.append(word);
    if (tools.length === 0) return;
    await Promise.allSettled(tools.map((name) => turn.callTool(name, {})));
  }
}
