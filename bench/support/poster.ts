// The upper limit for webhooks: the bytes and headers of a delivery, sent with only `undici`.
import { Pool } from 'undici';
import type { EgressRequest } from '../../packages/server/src/egress/exchange.ts';

/** Throws unless the receiver responds with 200. */
export function createPoster(url: string, connections: number): (request: EgressRequest) => Promise<void> {
  const pool = new Pool(new URL(url).origin, { connections, pipelining: 1 });
  return async ({ headers, body }) => {
    const response = await pool.request({ method: 'POST', path: '/', headers: headers!, body: body! });
    await response.body.dump();
    if (response.statusCode !== 200) throw new Error(`the receiver responded with ${response.statusCode}`);
  };
}
