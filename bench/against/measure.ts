// The same client for Signalbox and every peer: it opens a conversation, reads its stream to the end, and counts.
import { Pool } from 'undici';
import { quantile } from '../support/table.ts';

export interface Target {
  title: string;
  /** What is on disk in this configuration, and when. */
  keeps: string;
  /** The requests before the stream, if there are any, and the one whose response is the stream. */
  open(post: (path: string, body: object) => Promise<Record<string, string>>): Promise<StreamRequest>;
  /** In each delta. Without it the answer arrives at once. */
  delta?: string;
  /** In the last event of a stream that stays open after it. */
  end?: string;
}

export interface StreamRequest {
  method: 'GET' | 'POST';
  path: string;
  body?: object;
  headers?: Record<string, string>;
}

export interface Sample {
  /** Milliseconds, median, one conversation at a time. */
  firstToken?: number;
  /** Conversations per second, for each of `AT_A_TIME`. */
  perSecond: number[];
  failed: number;
}

export const AT_A_TIME = [10, 100];
const SAMPLE_MS = 2_000;
// Longer than the slowest answer of any peer on a busy machine.
const ANSWER_MS = 30_000;
// The last word of each answer.
const LAST_WORD = 'word19';

/** One round: one conversation at a time, then 10, then 100. */
export async function sampleOf(url: string, target: Target): Promise<Sample> {
  const firstTokens: number[] = [];
  const perSecond: number[] = [];
  let failed = 0;
  for (const atATime of [1, ...AT_A_TIME]) {
    const pool = new Pool(url, { connections: atATime, pipelining: 1 });
    let done = 0;
    const begin = performance.now();
    await Promise.all(
      Array.from({ length: atATime }, async () => {
        while (performance.now() - begin < SAMPLE_MS) {
          try {
            const firstToken = await converse(pool, target);
            if (atATime === 1 && firstToken !== undefined) firstTokens.push(firstToken);
            done += 1;
          } catch (error) {
            if (failed === 0) console.error(`  ${target.title}: ${error}`);
            failed += 1;
          }
        }
      }),
    );
    if (atATime > 1) perSecond.push((done / (performance.now() - begin)) * 1000);
    await pool.destroy();
  }
  return { ...(firstTokens.length > 0 && { firstToken: quantile(firstTokens, 0.5) }), perSecond, failed };
}

/** Returns the milliseconds to the first delta. */
async function converse(pool: Pool, { open, delta, end }: Target): Promise<number | undefined> {
  const begin = performance.now();
  const signal = AbortSignal.timeout(ANSWER_MS);
  const send = ({ method, path, body, headers }: StreamRequest) =>
    pool.request({
      method,
      path,
      signal,
      headers: { ...(body && { 'content-type': 'application/json' }), ...headers },
      ...(body && { body: JSON.stringify(body) }),
    });
  const response = await send(
    await open(async (path, body) => {
      const { statusCode, body: answer } = await send({ method: 'POST', path, body });
      const text = await answer.text();
      if (statusCode >= 300) throw new Error(`${path}: ${statusCode} ${text}`);
      return JSON.parse(text);
    }),
  );
  let seen = '';
  let firstToken: number | undefined;
  for await (const part of response.body) {
    seen += part;
    if (firstToken === undefined && delta !== undefined && seen.includes(delta)) firstToken = performance.now() - begin;
    if (end !== undefined && seen.includes(end)) break;
  }
  if (response.statusCode >= 300 || !seen.includes(LAST_WORD)) {
    throw new Error(`${response.statusCode}, without ${LAST_WORD}: ${seen.slice(-500)}`);
  }
  return firstToken;
}
