// `signalbox sessions`, `approvals` and `schedules` as processes that call a real service.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { programFile } from '../../server/test/support/programs.ts';
import { startTestService, type TestService } from '../../server/test/support/service.ts';

// A process takes seconds to start on a busy machine, and each of these tests starts several.
vi.setConfig({ testTimeout: 240_000 });

const command = await programFile('command');

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});

const children = new Set<ChildProcess>();
// `watch` runs until it is stopped.
afterAll(() => {
  for (const child of children) child.kill();
});

function start(args: string[], { cwd, maxFileKiB }: { cwd?: string; maxFileKiB?: number } = {}) {
  const env = { PATH: process.env.PATH, SIGNALBOX_API_KEY: service.adminKey, SIGNALBOX_URL: service.url };
  const limit = maxFileKiB === undefined ? '' : `ulimit -f ${maxFileKiB} && `;
  const child = spawn('sh', ['-c', `${limit}exec "$0" "$@"`, process.execPath, command, ...args], { env, cwd });
  children.add(child);
  child.once('close', () => children.delete(child));
  return child;
}

async function run(...args: string[]) {
  const child = start(args);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  expect(stdout + stderr).not.toContain(service.adminKey);
  return { code: code as number, stdout, stderr };
}

const refund = {
  type: 'client' as const,
  name: 'refund',
  description: 'Refunds.',
  effectful: true,
  inputSchema: { type: 'object', properties: { cents: { type: 'integer', maximum: 500 } } },
};

async function asking(name = 'Refund desk'): Promise<{ sessionId: string; operationId: string; agentId: string }> {
  const { agentId } = await service.client.agents.create({
    name,
    model: {
      provider: 'scripted',
      model: 'demo',
      settings: {
        script: [
          { text: 'I ask.\nNow.', toolCalls: [{ name: 'refund', input: { cents: 17 } }] },
          { text: 'So be it.' },
        ],
      },
    },
    tools: [refund],
  });
  const { sessionId } = await service.client.sessions.open({ agentId, environment: 'staging', input: 'go' });
  const pending = async () => (await service.client.approvals.list({ sessionId, status: 'pending' })).data[0];
  await expect.poll(pending).toBeDefined();
  return { sessionId, agentId, operationId: (await pending())!.operationId };
}

test('an approval is listed with its input, approved with an edited one, and a second decision fails', async () => {
  const { sessionId, operationId } = await asking();
  const listed = await run('approvals', 'list', '--session-id', sessionId);
  expect(listed).toMatchObject({ code: 0, stderr: '' });
  expect(listed.stdout).toMatch(
    new RegExp(`^${operationId}  refund  pending\n  in ${sessionId}, staging, requested .*\n`),
  );
  expect(listed.stdout).toContain('  input {"cents":17}\n');

  const unfit = await run('approvals', 'approve', operationId, '--input', '{"cents":900}');
  expect([unfit.code, unfit.stderr]).toEqual([1, expect.stringContaining('400 invalid_request')]);
  expect((await run('approvals', 'approve', operationId, '--input', '{')).code).toBe(2);
  const approved = await run('approvals', 'approve', operationId, '--input', '{"cents":400}', '--reason', 'less');
  expect(approved).toEqual({ code: 0, stdout: `approved: refund in ${sessionId}\n`, stderr: '' });
  expect(await service.client.approvals.get(operationId)).toMatchObject({
    editedInput: { cents: 400 },
    reason: 'less',
  });
  const late = await run('approvals', 'deny', operationId);
  expect([late.code, late.stderr]).toEqual([1, expect.stringContaining('approval_already_resolved')]);
  expect(await run('approvals', 'list', '--session-id', sessionId)).toEqual({ code: 0, stdout: '', stderr: 'None.\n' });
});

test('watching a session shows text as it is generated, calls, approvals with the command that decides them, and the end', async () => {
  const { sessionId, operationId } = await asking('Evil \u001b[2J desk');
  const list = await run('sessions', 'list', '--status', 'waiting', '--json');
  const line = list.stdout.split('\n').find((one) => one.includes(sessionId))!;
  expect(JSON.parse(line)).toMatchObject({ sessionId, status: 'waiting' });
  // Names are untrusted text.
  expect((await run('sessions', 'list', '--status', 'waiting')).stdout).toMatch(
    new RegExp(`${sessionId}  waiting: 1 to approve +Evil \ufffd\\[2J desk +staging`),
  );

  const watching = start(['sessions', 'watch', sessionId]);
  let screen = '';
  watching.stdout.setEncoding('utf8').on('data', (piece: string) => {
    screen += piece;
  });
  const over = once(watching, 'close');
  await expect.poll(() => screen).toContain('-- waiting: 1 to approve');
  expect((await run('approvals', 'deny', operationId, '--reason', 'Not today.')).code).toBe(0);
  await expect.poll(async () => (await service.client.sessions.get(sessionId)).status).toBe('idle');
  const sent = await run('sessions', 'send', sessionId, 'and now?');
  expect(sent.stdout).toMatch(/^Sent msg_/);
  await expect.poll(async () => (await service.client.sessions.get(sessionId)).turn).toBe(2);
  const forked = await run('sessions', 'fork', sessionId, '--at-turn', '1', '--agent-version', '1');
  expect(forked.stdout).toMatch(
    new RegExp(`^Opened ses_\\w+, which continues ${sessionId} after turn 1. It is idle\n$`),
  );
  const [opened] = (await service.client.sessions.list({ forkedFromSessionId: sessionId })).data;
  expect((await run('sessions', 'send', opened!.sessionId, 'once more')).code).toBe(0);
  expect((await run('sessions', 'close', sessionId)).code).toBe(0);
  expect((await over)[0]).toBe(0);
  expect(screen).toContain(
    `I ask.\nNow.\n?  refund {"cents":17}\n   signalbox approvals approve ${operationId}\n-- waiting: 1 to approve\n!  denied: Not today.\n`,
  );
  expect(screen).toContain('So be it.\n');
  expect(screen).toMatch(/-- completed\nThe session has ended\.\n$/);
});

test('a turn that failed is listed with its error, and retried once', async () => {
  const settings = { script: [{ failWith: 'rejected' as const }, { text: 'Better.' }] };
  const model = { provider: 'scripted' as const, model: 'x', settings };
  const { agentId } = await service.client.agents.create({ name: 'Failing', model });
  const { sessionId } = await service.client.sessions.open({ agentId, environment: 'staging', input: 'go' });
  const stateNow = async () => (await service.client.sessions.get(sessionId)).stopReason;
  await expect.poll(stateNow).toBe('error');
  const listed = await run('sessions', 'list', '--agent', agentId);
  expect(listed.stdout).toMatch(/idle: error .*The script lets the model reject the request/);
  expect((await run('sessions', 'retry', sessionId)).stdout).toBe(`${sessionId} is running\n`);
  await expect.poll(stateNow).toBe('endTurn');
  const again = await run('sessions', 'retry', sessionId);
  expect(again.code).toBe(1);
  expect(again.stderr).toContain('Its last turn did not fail.');
});

test('a schedule is paused and enabled; unknown ids, missing permissions and wrong usage give a message', async () => {
  const { agentId } = await service.client.agents.create({ name: 'Reporter', model: 'scripted/x' });
  const schedule = { agentId, environment: 'staging', cron: '0 9 * * *', timezone: 'Europe/Berlin' };
  const { scheduleId } = await service.client.schedules.create(schedule);
  expect((await run('schedules', 'list')).stdout).toMatch(
    new RegExp(`^${scheduleId}  enabled  Reporter  staging +0 9 \\* \\* \\* Europe/Berlin  2`, 'm'),
  );
  expect((await run('schedules', 'pause', scheduleId)).stdout).toContain('paused');
  expect((await service.client.schedules.get(scheduleId)).status).toBe('paused');
  expect((await run('schedules', 'enable', scheduleId)).stdout).toContain('enabled');
  expect((await run('schedules', 'runs', scheduleId)).stderr).toBe('None.\n');

  const wrong = [
    [['sessions', 'watch'], 2, 'sessions watch: needs SESSION. See: signalbox sessions watch --help'],
    [['sessions', 'list', 'more'], 2, 'takes no arguments'],
    [['sessions', 'list', '--status', 'asleep'], 2, '--status must be one of idle, running'],
    [['sessions', 'fork', 'ses_1', '--at-turn', 'two'], 2, '--at-turn must be a whole number'],
    [['sessions', 'list', '--limit', 'many'], 2, '--limit must be a whole number'],
    [['approvals', 'frown'], 2, 'there is no "frown"'],
    [['sessions', 'cancel', 'ses_00000000000000000000000000'], 1, '404 not_found'],
  ] as const;
  for (const [args, code, words] of wrong) {
    const said = await run(...args);
    expect([said.code, said.stdout, said.stderr]).toEqual([code, '', expect.stringContaining(words)]);
  }
  for (const noun of ['sessions', 'approvals', 'schedules']) {
    const { code, stdout } = await run(noun, '--help');
    expect([code, stdout]).toEqual([0, expect.stringContaining(`signalbox ${noun} list`)]);
  }
});

test('a file is uploaded, listed, downloaded as it was and deleted; a download never overwrites a file by itself', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-files-'));
  try {
    const path = join(directory, 'data.bin');
    const bytes = randomBytes(3_000_000);
    writeFileSync(path, bytes);
    const uploaded = await run('files', 'upload', path, '--environment', 'production');
    expect(uploaded, uploaded.stderr).toMatchObject({ code: 0, stdout: expect.stringMatching(/^file_\w+\n$/) });
    const fileId = uploaded.stdout.trim();
    const listed = await run('files', 'list', '--environment', 'production');
    expect(listed.stdout).toMatch(
      new RegExp(
        `^${fileId} +data\\.bin +2\\.9 MiB +application/octet-stream +production +Test \\(key_\\w+\\) +2`,
        'm',
      ),
    );
    const copy = join(directory, 'copy.bin');
    expect((await run('files', 'download', fileId, '--output', copy)).stdout).toBe(`${copy}\n`);
    expect(readFileSync(copy).equals(bytes)).toBe(true);
    // A limit of the user, as a full disk would be.
    const limited = start(['files', 'download', fileId, '--output', path], { maxFileKiB: 1000 });
    const [problem, [code]] = await Promise.all([text(limited.stderr), once(limited, 'close')]);
    expect([code, problem]).toEqual([
      1,
      expect.stringMatching(/data\.bin can't be written: .* It is as it was before\.\n$/),
    ]);
    expect([readFileSync(path).equals(bytes), readdirSync(directory).sort()]).toEqual([true, ['copy.bin', 'data.bin']]);
    // The name of the file is taken in the current directory.
    const clash = start(['files', 'download', fileId], { cwd: directory });
    expect([(await once(clash, 'close'))[0], readFileSync(path).equals(bytes)]).toEqual([1, true]);
    expect((await run('files', 'delete', fileId)).stdout).toBe(`deleted: ${fileId}\n`);
    expect(await run('files', 'download', fileId)).toMatchObject({ code: 1, stdout: '' });
    expect(await run('files', 'upload', path)).toMatchObject({ code: 2 });
    expect(await run('files', 'upload', directory, '--environment', 'production')).toMatchObject({ code: 1 });
  } finally {
    rmSync(directory, { recursive: true });
  }
});
