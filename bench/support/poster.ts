// The limit of webhooks: the bytes and headers of a delivery, posted by nothing but `undici`.
import { Pool } from 'undici';
import type { EgressRequest } from '../../packages/server/src/egress/egress.ts';

/** Throws unless the receiver answers 200. */
export function createPoster(url: string, connections: number): (request: EgressRequest) => Promise<void> {
  const pool = new Pool(new URL(url).origin, { connections, pipelining: 1 });
  return async ({ headers, body }) => {
    const answer = await pool.request({ method: 'POST', path: '/', headers: headers!, body: body! });
    await answer.body.dump();
    if (answer.statusCode !== 200) throw new Error(`the receiver answered ${answer.statusCode}`);
  };
}
