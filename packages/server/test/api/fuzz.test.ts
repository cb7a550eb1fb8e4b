// Every route of the contract and of the console is fuzzed by its own schema: valid requests, and mutations of them. They go over
// the network to a complete service on PostgreSQL. Whatever is sent:
//
//   - a response arrives, and is never a 500: it is what the contract has for the route, or a problem with its request id
//   - no secret is in a response that is not meant to show it, nor in any log line, event or stored response (P9)
//   - nothing of another organization is in a response or is changed
//   - nothing of another session is in a response to a session token
//
// The seed is printed; SIGNALBOX_FUZZ_SEED repeats its requests, and SIGNALBOX_FUZZ_RUNS sets how many go to each route.
import { Problem, type Route, routes } from '@signalbox/contract';
import fc from 'fast-check';
import { Compile } from 'typebox/compile';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Case, casesOf } from './fuzz/cases.ts';
import { consoleCalls } from './fuzz/console-calls.ts';
import { requestOf } from './fuzz/request.ts';
import { exchange, type WireAnswer, type WireRequest } from './fuzz/wire.ts';
import { createFuzzWorld, type FuzzWorld } from './fuzz/world.ts';

const seed = Number(process.env.SIGNALBOX_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));
const runs = Number(process.env.SIGNALBOX_FUZZ_RUNS ?? 15);
/** A longer body may be cut off before it is read. */
const BODY_LIMIT = 1024 * 1024;
const ERROR_LEVEL = 50;

let world: FuzzWorld;
let port: number;
let before: unknown;
/** The error codes of each route, from the published document. */
let codes: Map<string, readonly string[]>;
const isProblem = Compile(Problem);
let linesSeen = 0;
let routesDone = 0;
/** This many routes in a row find enough unused resources. */
const REFRESHED_EVERY = runs > 100 ? 1 : 4;

beforeAll(async () => {
  console.log(`fuzzing with SIGNALBOX_FUZZ_SEED=${seed} SIGNALBOX_FUZZ_RUNS=${runs}`);
  world = await createFuzzWorld();
  port = Number(new URL(world.service.url).port);
  before = await world.foreignState();
  const document = (await (await world.service.fetch('/api/v1/openapi.json')).json()) as {
    paths: Record<string, Record<string, { 'x-error-codes'?: string[] }>>;
  };
  codes = new Map(
    Object.entries(document.paths).flatMap(([path, byMethod]) =>
      Object.entries(byMethod).map(([method, operation]) => [
        `${method.toUpperCase()} ${path.replace(/^\/api\/v1/, '')}`,
        operation['x-error-codes'] ?? [],
      ]),
    ),
  );
});
afterAll(() => world?.close());

test.each(Object.entries<Route>({ ...routes, ...consoleCalls }))(
  '%s',
  { timeout: 60_000 + runs * 1_000 },
  async (_, route) => {
    if (routesDone++ % REFRESHED_EVERY === 0) await world.refresh();
    const isResult = Compile(route.result);
    await fc.assert(
      fc.asyncProperty(casesOf(route), async (made) => {
        const misplaced = new Set<string>();
        const resolve = <T>(value: T) => world.resolve(value, misplaced);
        const request = requestOf(made, { resolve, host: `127.0.0.1:${port}` });
        const answer = await exchange(port, request);
        judgeLog();
        if (!answer) return judgeSilence(request);
        judge({ route, made, request, answer, misplaced, isResult });
      }),
      { seed, numRuns: runs },
    );
  },
);

test('afterwards the service is ready, and the other organization is unchanged', async () => {
  expect((await fetch(`${world.service.url}/readyz`)).status).toBe(200);
  const { agentId } = await world.service.client.agents.create({ name: 'after', model: 'scripted/x' });
  expect((await world.service.client.agents.get(agentId)).name).toBe('after');
  expect(await world.foreignState()).toEqual(before);
});

/** Fails on any line that is logged as an error: it would be a 500, or a failure that no response reported. */
function judgeLog(): void {
  const lines = world.service.logLines.slice(linesSeen);
  linesSeen += lines.length;
  expect(lines.filter((line) => (JSON.parse(line) as { level: number }).level >= ERROR_LEVEL)).toEqual([]);
  expect(lines.filter((line) => [...world.secrets].some((secret) => line.includes(secret)))).toEqual([]);
}

/** The connection may end without a response if the body is over the limit or incomplete. */
function judgeSilence(request: WireRequest): void {
  if (!request.isCut)
    expect(request.body?.length ?? 0, 'length of a body without a response').toBeGreaterThan(BODY_LIMIT);
}

function judge({
  route,
  made,
  request,
  answer,
  misplaced,
  isResult,
}: {
  route: Route;
  made: Case;
  request: WireRequest;
  answer: WireAnswer;
  misplaced: ReadonlySet<string>;
  isResult: { Check(value: unknown): boolean; Errors(value: unknown): unknown };
}): void {
  const { status, headers, text, whole } = answer;
  expect(status, whole).toBeLessThan(500);
  expect(headers.get('x-request-id'), whole).toMatch(/^req_/);
  expect(headers.has('x-injected')).toBe(false);
  expect(headers.get('cache-control')).toBe('no-store');
  const type = headers.get('content-type') ?? '';
  // Whatever was uploaded: it may look like a response, and have any secret that the uploader knows. Only stored content has ranges.
  const isContent = status < 400 && headers.get('accept-ranges') === 'bytes';
  // The response to HEAD has no body.
  const json: unknown =
    text !== '' && !isContent && /json/.test(type) && !/jsonl|ndjson/.test(type) ? JSON.parse(text) : undefined;
  const { target } = request;
  const isPerson = request.headers.some(([name]) => name === 'Cookie');
  const named = { target, headers: JSON.stringify(request.headers), body: Buffer.from(request.body ?? []).toString() };
  expect(world.foreignIn(whole, named), 'of another organization').toEqual([]);
  const isToken = request.headers.some(([name, value]) => name === 'Authorization' && value.startsWith('Bearer sbt_'));
  if (isToken) expect(world.secludedIn(whole, named), 'of another session').toEqual([]);

  if (isContent || (request.method === 'HEAD' && text === '')) {
    // There is no body to check.
  } else if (status >= 400) {
    expect(isProblem.Check(json), whole).toBe(true);
    const problem = json as Problem;
    expect([type, problem.status]).toEqual(['application/problem+json; charset=utf-8', status]);
    // A replayed response has the id of the first request.
    if (!headers.has('idempotent-replayed')) expect(problem.requestId).toBe(headers.get('x-request-id'));
    if (isSamePlace(made) && isOfContract(route))
      expect(documented(route, request, isPerson, isToken), whole).toContain(problem.code);
  } else if (isSamePlace(made)) {
    if (json !== undefined) expect(isResult.Check(json), JSON.stringify(isResult.Errors(json))).toBe(true);
    else for (const item of itemsOf(type, text)) expect(isResult.Check(item), JSON.stringify(item)).toBe(true);
  }
  const mayShow = new Set([...misplaced, ...revealed(route, json, status)]);
  world.learn(json);
  const shown = isContent ? '' : whole;
  expect([...world.secrets].filter((secret) => shown.includes(secret) && !mayShow.has(secret))).toEqual([]);
}

/** Whether the request still goes to the route that it was generated for. */
function isSamePlace({ mutations }: Case): boolean {
  return mutations.every(({ at }) => at !== 'method' && at !== 'path' && at !== 'param' && at !== 'bytes');
}

const isOfContract = ({ path }: Route) => !path.startsWith('/console/');

/** The document covers callers with a key; other callers get some codes from every route. */
function documented(
  { method, path }: Route,
  { headers }: WireRequest,
  isPerson: boolean,
  isToken: boolean,
): readonly string[] {
  const own = isPerson
    ? ['signed_out', 'csrf_refused', 'insufficient_permission', 'api_key_required']
    : isToken
      ? ['session_token_invalid', 'session_token_revoked', 'session_token_expired', 'origin_not_allowed', 'not_found']
      : [];
  // Also for a method that needs no body.
  const ofCodedBody = headers.some(([name]) => name === 'Content-Encoding') ? ['unsupported_media_type'] : [];
  return [...(codes.get(`${method} ${path}`) ?? []), ...own, ...ofCodedBody];
}

/** The items of an event stream, or of a file of JSON lines. */
function itemsOf(type: string, text: string): unknown[] {
  if (type.startsWith('text/event-stream')) {
    return [...text.matchAll(/^data: (.*)\n\n/gm)].map(([, data]) => JSON.parse(data!));
  }
  if (!/jsonl|ndjson/.test(type)) return [];
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

/** The secret that the response exists to show, once. */
function revealed({ reveals }: Route, json: unknown, status: number): string[] {
  if (!reveals || status >= 300) return [];
  const value = reveals.split('.').reduce((at, name) => (at as Record<string, unknown>)?.[name], json);
  return typeof value === 'string' ? [value] : [];
}
