// Opens sessions and reads their streams, as a client does.
import { Pool } from 'undici';
import type { Bench } from './harness.ts';

export interface SessionClient {
  /** Opens a session with input, and reads the stream in the response until it contains this text. */
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

export const IDLE = '"status":"idle"';

export function createSessionClient(
  { url, adminKey }: Pick<Bench, 'url' | 'adminKey'>,
  agentId: string,
  connections: number,
): SessionClient {
  const pool = new Pool(url, { connections, pipelining: 1 });
  const headers = {
    authorization: `Bearer ${adminKey}`,
    accept: 'text/event-stream',
    'content-type': 'application/json',
  };
  const body = JSON.stringify({ agentId, environment: 'production', input: 'Hello' });
  return {
    async openAndReadUntil(text) {
      const response = await pool.request({ method: 'POST', path: '/api/v1/sessions', headers, body });
      let seen = '';
      let isSeen = false;
      for await (const part of response.body) {
        seen += part;
        isSeen = seen.includes(text);
        // The response ends by itself when the session is idle; its connection is then used again.
        if (isSeen && text !== IDLE) return;
      }
      if (!isSeen || response.statusCode !== 201) throw new Error(`${response.statusCode}, without ${text}: ${seen}`);
    },
  };
}
