// Opens sessions and reads their streams, as a client does.
import { Pool } from 'undici';
import type { Bench } from './harness.ts';

export interface SessionClient {
  /** Opens a session with input and reads its stream until it contains this text. */
  openAndReadUntil(text: string): Promise<void>;
}

const DELTAS = 20;

/** Creates an agent whose model responds at once with 20 words, one delta each. Returns its id. */
export async function createScriptedAgent(bench: Bench): Promise<string> {
  const text = Array.from({ length: DELTAS }, (_, at) => `word${at}`).join(' ');
  const { agent } = await bench.call<{ agent: { agentId: string } }>('POST', '/agents', {
    name: 'Scripted',
    model: { provider: 'scripted', model: 'instant', settings: { script: [{ text }] } },
  });
  return agent.agentId;
}

export function createSessionClient(bench: Bench, agentId: string, connections: number): SessionClient {
  const calls = new Pool(bench.url, { connections, pipelining: 1 });
  // Leaving the stream ends its connection.
  const streams = new Pool(bench.url, { connections, pipelining: 1 });
  const authorization = `Bearer ${bench.adminKey}`;
  const body = JSON.stringify({ agentId, environment: 'production', input: 'Hello' });
  return {
    async openAndReadUntil(text) {
      const opened = await calls.request({
        method: 'POST',
        path: '/api/v1/sessions',
        headers: { authorization, 'content-type': 'application/json' },
        body,
      });
      const answer = await opened.body.text();
      if (opened.statusCode !== 201) throw new Error(`opening a session: ${opened.statusCode} ${answer}`);
      const { session } = JSON.parse(answer);
      const stream = await streams.request({
        method: 'GET',
        path: `/api/v1/sessions/${session.sessionId}/stream`,
        headers: { authorization },
      });
      let seen = '';
      for await (const part of stream.body) {
        seen += part;
        if (seen.includes(text)) return;
      }
      throw new Error(`a stream ended before ${text}: ${seen}`);
    },
  };
}
