// The tools of an agent, of every type: listing them, and running the calls that a node runs.
import { toolNameOf } from '@signalbox/contract';
import { shortOrText } from '../lib/json/json-text.ts';
import type { Platform } from '../platform.ts';
import { createHttpTool } from './http/http-tool.ts';
import { createMcpTools } from './mcp/mcp-tools.ts';
import type { ListTools, MockSource, RunTool, TurnTool, UnavailableServer } from './tool/tool.ts';
import { ownTools } from './tool/turn-tool.ts';

export interface Tools {
  list: ListTools;
  run: RunTool;
  close(): Promise<void>;
}

export function createTools(
  platform: Pick<Platform, 'db' | 'vault' | 'egress' | 'clock' | 'log' | 'files' | 'memory'>,
): Tools {
  const http = createHttpTool(platform);
  const mcp = createMcpTools(platform);
  const runners: Record<Exclude<Extract<TurnTool, { runsAs: 'here' }>['source'], MockSource>['type'], RunTool> = {
    http,
    mcp: mcp.run,
  };
  return {
    async list(owner, tools, signal) {
      const lists = await Promise.all(
        tools.map((tool) => (tool.type === 'mcp' ? mcp.list(owner, tool, signal) : ownTools([tool]))),
      );
      const own: TurnTool[] = [];
      const ofServers: TurnTool[] = [];
      const unavailable: UnavailableServer[] = [];
      for (const [index, list] of lists.entries()) {
        const tool = tools[index]!;
        if (typeof list === 'string') unavailable.push({ name: toolNameOf(tool), reason: list });
        else (tool.type === 'mcp' ? ofServers : own).push(...list);
      }
      // The agent's own come first: the last ones are left out if there are more than a model takes.
      return { tools: [...own, ...ofServers], unavailable };
    },
    async run(call, signal) {
      if (call.tool.runsAs !== 'here' || call.tool.source.type === 'mock')
        throw new TypeError(`A node does not run calls of ${call.tool.source.type} tools`);
      const outcome = await runners[call.tool.source.type](call, signal);
      return outcome.error === undefined ? { output: shortOrText(outcome.output) } : outcome;
    },
    close: () => mcp.close(),
  };
}
