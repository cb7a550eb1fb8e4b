import { createLog } from '@signalbox/server';
import { expect, test } from 'vitest';
import { logText } from './log-text.ts';

const plain = { color: false, isVerbose: false };

/** What a terminal shows of what is logged. */
function shownOf(write: (log: ReturnType<typeof createLog>) => void, options = plain): string {
  const texts: string[] = [];
  const destination = { write: (line: string) => void texts.push(logText(line, options) ?? '') };
  write(createLog({ level: 'debug', destination }).child({ nodeId: 'c0ffee' }));
  return texts.join('');
}

const request = {
  requestId: 'req_1',
  method: 'POST',
  route: '/api/v1/sessions',
  status: 201,
  durationMs: 12,
  organizationId: 'org_1',
  actorId: 'key_1',
};

test('a request is one short line, and the line of a failure has the id to search by', () => {
  expect(shownOf((log) => log.info(request, 'request'))).toMatch(
    /^\d\d:\d\d:\d\d info {2}POST \/api\/v1\/sessions 201 12 ms\n$/,
  );
  expect(shownOf((log) => log.info({ ...request, status: 503 }, 'request'))).toContain('503 12 ms req_1\n');
  expect(shownOf((log) => log.info({ ...request, route: null, status: 404 }, 'request'))).toContain('(no such route)');
});

test('requests of the console and of health checks are shown if they fail, change something, or everything is asked for', () => {
  const checks = { ...request, method: 'GET', route: '/healthz', status: 200 };
  const reads = { ...request, method: 'GET', status: 200, actorId: 'usr_1' };
  const files = { ...request, method: 'GET', route: '/console/*', status: 200, actorId: undefined };
  for (const one of [checks, reads, files]) {
    expect(shownOf((log) => log.info(one, 'request'))).toBe('');
    expect(shownOf((log) => log.info({ ...one, status: 500 }, 'request'))).toContain(' 500 ');
    expect(shownOf((log) => log.info(one, 'request'), { ...plain, isVerbose: true })).toContain(' 200 ');
  }
  expect(shownOf((log) => log.info({ ...reads, method: 'POST' }, 'request'))).toContain('POST');
  expect(shownOf((log) => log.info({ ...reads, actorId: 'key_1' }, 'request'))).toContain('GET');
});

test('other lines have their message and the fields that matter, and an error its cause', () => {
  const fields = { version: '1.0.0', roles: ['api', 'runtime'], none: null, why: 'no room' };
  expect(shownOf((log) => log.info(fields, 'started'))).toMatch(
    / info {2}started version=1\.0\.0 roles=api,runtime why="no room"\n$/,
  );
  const cause = Object.assign(new Error('connection refused'), { code: 'ECONNREFUSED' });
  const text = shownOf((log) => log.warn({ err: new TypeError('fetch failed', { cause }) }, 'retrying'));
  expect(text).toMatch(/ warn {2}retrying\n {6}TypeError: fetch failed\n {8}at /);
  expect(text).toMatch(/\n {6}caused by Error ECONNREFUSED: connection refused\n/);
});

test('nothing that is logged can control the terminal', () => {
  const evil = '\u001b[2J\u202e\nnext';
  const text = shownOf((log) => log.warn({ err: new Error(evil), field: evil, [evil]: 1 }, evil));
  const control = /(?!\n)[\p{Cc}\p{Cf}]/u;
  expect(text).not.toMatch(control);
  expect(logText(`not json ${evil}`, plain)).not.toMatch(control);
});

test('color is used only if it is asked for', () => {
  const esc = String.fromCharCode(27);
  expect(shownOf((log) => log.warn('careful'))).not.toContain(esc);
  expect(shownOf((log) => log.warn('careful'), { ...plain, color: true })).toContain(esc);
});
