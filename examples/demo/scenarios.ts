// What the demo can show, each a file of its own.
import type { Session } from '@signalbox/client';
import { approval } from './scenarios/approval.ts';
import { clientTool } from './scenarios/client-tool.ts';
import { subAgent } from './scenarios/sub-agent.ts';
import { tools } from './scenarios/tools.ts';
import { worker } from './scenarios/worker.ts';
import type { Stage } from './stage.ts';

export interface Scenario {
  /** In a few words. */
  shows: string;
  /** Resolves with the Session that it showed, as it ended. */
  play(stage: Stage): Promise<Session>;
}

export type ScenarioName = 'approval' | 'tools' | 'client-tool' | 'sub-agent' | 'worker';

/** The first is what `npm run demo` shows. */
export const scenarios: Readonly<Record<ScenarioName, Scenario>> = {
  approval: { shows: 'a person decides before money moves, and may change how much', play: approval },
  tools: { shows: 'three lookups asked for at once run together', play: tools },
  'client-tool': { shows: 'a tool that your own program runs', play: clientTool },
  'sub-agent': { shows: 'an Agent that has another do the work, which asks for itself', play: subAgent },
  worker: { shows: "an Agent whose loop is your own program's", play: worker },
};
