// What `--against` measures beside Signalbox: where each peer comes from, how a client asks for one conversation, and what is kept.

import { randomUUID } from 'node:crypto';
import type { Target } from './measure.ts';

export interface Peer {
  name: string;
  /** With exact versions. The table has that of the first. */
  packages: Record<string, string>;
  /** Programs of this peer; `./NAME/program.mjs` starts one. */
  targets: Target[];
}

const HELLO = [{ role: 'user', content: 'Hello' }];

export const peers: Peer[] = [
  {
    name: 'mastra',
    packages: {
      '@mastra/core': '1.71.0',
      '@mastra/hono': '1.7.9',
      '@mastra/memory': '1.31.0',
      '@mastra/pg': '1.27.1',
      '@hono/node-server': '2.1.8',
      hono: '4.13.19',
      zod: '4.6.7',
    },
    targets: [
      {
        title: 'Mastra, agent without memory',
        keeps: 'nothing',
        ...mastra('forgetful'),
      },
      {
        title: 'Mastra, agent with memory',
        keeps: 'the messages, in PostgreSQL, once the answer is complete',
        ...mastra('remembering'),
      },
      {
        title: 'Mastra, durable agent (beta)',
        keeps: 'the messages and a snapshot of each step, in PostgreSQL; deltas in memory',
        ...mastra('durable'),
      },
    ],
  },
  {
    name: 'langgraph',
    packages: {
      '@langchain/langgraph-api': '2.0.0',
      '@langchain/langgraph': '1.7.3',
      '@langchain/langgraph-checkpoint': '1.2.2',
      '@langchain/core': '1.4.0',
      typescript: '5.9.3',
    },
    targets: [
      {
        title: 'LangGraph, development server',
        keeps: 'nothing at first: all in memory, and in files after 3 s without work',
        async open(post) {
          const { thread_id: thread } = await post('/threads', {});
          const body = { assistant_id: 'bench', input: { messages: HELLO }, stream_mode: ['messages-tuple'] };
          return { method: 'POST', path: `/threads/${thread}/runs/stream`, body };
        },
        delta: '"content": "word',
      },
    ],
  },
  {
    name: 'eve',
    packages: { eve: '0.80.1', 'just-bash': '3.1.0' },
    targets: [
      {
        title: 'eve',
        keeps: 'each step and each delta, in files, without waiting for the disk',
        async open(post) {
          const { sessionId } = await post('/eve/v1/session', { message: 'Hello' });
          return { method: 'GET', path: `/eve/v1/session/${sessionId}/stream` };
        },
        delta: '"type":"message.appended"',
        end: '"type":"session.waiting"',
      },
    ],
  },
  {
    name: 'restate',
    packages: { '@restatedev/restate-server': '1.7.12', '@restatedev/restate-sdk': '1.17.2' },
    targets: [
      {
        title: 'Restate, calls with one journalled step',
        keeps: 'each call and each step, in its log on disk',
        open: async () => ({ method: 'POST', path: '/bench/answer' }),
      },
    ],
  },
];

function mastra(agentId: string): Pick<Target, 'open' | 'delta'> {
  return {
    open: async () => ({
      method: 'POST',
      path: `/api/agents/${agentId}/stream`,
      body: { messages: HELLO, memory: { thread: randomUUID(), resource: 'bench' } },
    }),
    delta: '"type":"text-delta"',
  };
}
