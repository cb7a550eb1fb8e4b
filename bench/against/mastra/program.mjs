// Mastra's server with its adapter for Hono, and its storage for PostgreSQL, which its documentation recommends for production. Three
// agents: without memory, with memory, and a durable one, whose runs continue after a crash.
import { serve } from '@hono/node-server';
import { Agent } from '@mastra/core/agent';
import { Mastra } from '@mastra/core/mastra';
import { MastraServer } from '@mastra/hono';
import { Memory } from '@mastra/memory';
import { PostgresStore } from '@mastra/pg';
import { Hono } from 'hono';

const usage = { inputTokens: 1, outputTokens: 20, totalTokens: 21 };
const model = {
  specificationVersion: 'v2',
  provider: 'bench',
  modelId: 'instant',
  supportedUrls: {},
  async doGenerate() {
    throw new Error('The benchmark only streams');
  },
  async doStream() {
    const deltas = Array.from({ length: 20 }, (_, at) => ({ type: 'text-delta', id: '1', delta: `word${at} ` }));
    const parts = [
      { type: 'stream-start', warnings: [] },
      { type: 'text-start', id: '1' },
      ...deltas,
      { type: 'text-end', id: '1' },
      { type: 'finish', finishReason: 'stop', usage },
    ];
    return { stream: ReadableStream.from(parts) };
  },
};

const options = { instructions: 'Answer.', model };
const memory = new Memory();
const mastra = new Mastra({
  agents: {
    forgetful: new Agent({ id: 'forgetful', name: 'Forgetful', ...options }),
    remembering: new Agent({ id: 'remembering', name: 'Remembering', memory, ...options }),
    durable: new Agent({ id: 'durable', name: 'Durable', durable: true, memory, ...options }),
  },
  storage: new PostgresStore({ id: 'storage', connectionString: process.env.DATABASE_URL }),
  recovery: { durableAgents: 'auto' },
  logger: false,
});
const app = new Hono();
await new MastraServer({ app, mastra }).init();
const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => {
  process.send(`http://127.0.0.1:${port}`);
});
process.on('SIGTERM', () => {
  server.close();
  process.exit();
});
