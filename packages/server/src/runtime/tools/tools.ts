// The tools of an Agent, whatever their type: which there are, and running a call of one.

import type { Platform } from '../../platform.ts';
import { createHttpTool } from './http-tool.ts';
import { createMcpTools } from './mcp-tools.ts';
import type { ListTools, RunTool, TurnTool, UnavailableServer } from './tool.ts';
import { turnToolOf } from './turn-tool.ts';

export interface Tools {
  list: ListTools;
  run: RunTool;
  close(): Promise<void>;
}

export function createTools(platform: Pick<Platform, 'db' | 'vault' | 'egress' | 'clock' | 'log'>): Tools {
  const http = createHttpTool(platform);
  const mcp = createMcpTools(platform);
  return {
    async list(owner, tools, signal) {
      const answers = await Promise.all(
        tools.map((tool) => (tool.type === 'mcp' ? mcp.list(owner, tool, signal) : [turnToolOf(tool)])),
      );
      const offered: TurnTool[] = [];
      const unavailable: UnavailableServer[] = [];
      for (const [index, answer] of answers.entries()) {
        if (typeof answer === 'string') unavailable.push({ name: tools[index]!.name, reason: answer });
        else offered.push(...answer);
      }
      return { tools: offered, unavailable };
    },
    async run(call, signal) {
      if (call.tool.source.type === 'http') return http(call, signal);
      if (call.tool.source.type === 'mcp') return mcp.run(call, signal);
      throw new TypeError(`A call of a ${call.tool.source.type} tool is not run here`);
    },
    close: () => mcp.close(),
  };
}
