// The scenarios of the demo, each in its own file.
import type { Session } from '@signalbox/client';
import { approval } from './scenarios/approval.ts';
import { clientTool } from './scenarios/client-tool.ts';
import { files } from './scenarios/files.ts';
import { long } from './scenarios/long.ts';
import { outage } from './scenarios/outage.ts';
import { subAgent } from './scenarios/sub-agent.ts';
import { tools } from './scenarios/tools.ts';
import { worker } from './scenarios/worker.ts';
import type { Stage } from './stage.ts';

export interface Scenario {
  /** A short description. */
  shows: string;
  /** Resolves with the session in its final state. */
  play(stage: Stage): Promise<Session>;
}

export type ScenarioName = 'approval' | 'tools' | 'client-tool' | 'sub-agent' | 'worker' | 'outage' | 'files' | 'long';

/** `npm run demo` runs the first one. */
export const scenarios: Readonly<Record<ScenarioName, Scenario>> = {
  approval: { shows: 'a refund that needs approval, with an amount that the approver may change', play: approval },
  tools: { shows: 'three tool calls that run in parallel', play: tools },
  'client-tool': { shows: 'a tool that your own program runs', play: clientTool },
  'sub-agent': { shows: 'an agent that calls another agent, which asks for its own approval', play: subAgent },
  worker: { shows: 'an agent whose turns your own program runs', play: worker },
  outage: { shows: 'a session that waits while its models are down, and continues by itself', play: outage },
  files: { shows: 'a photo in a message, and a table that a tool returns', play: files },
  long: { shows: 'a conversation that outgrows what its model can read', play: long },
};
