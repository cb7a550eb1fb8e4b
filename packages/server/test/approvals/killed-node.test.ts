// A node whose process is killed after the last of several decisions, before the call that they approve.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Chunk } from '@signalbox/client';
import sql from 'sql-template-tag';
import { expect, onTestFinished, test } from 'vitest';
import { join, setUp } from '../support/people.ts';
import { programFile } from '../support/programs.ts';
import { startTestService } from '../support/service.ts';

const masterKey = 'ab'.repeat(32);
const path = await programFile('node');
// As in the trigger below; nothing else locks this number.
const LOCK = 4711;

test('a process killed between the last decision and the call leaves the call to another, which runs it exactly once', async () => {
  const payments: unknown[] = [];
  const bank = createServer((request, response) => {
    payments.push(request.headers['idempotency-key']);
    response.setHeader('content-type', 'application/json').end('{"paid":true}');
  });
  await once(bank.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void bank.close().closeAllConnections());
  // Serves requests and runs nothing.
  const service = await startTestService({
    config: { masterKeys: [Buffer.from(masterKey, 'hex')], roles: new Set(['api']) },
  });
  onTestFinished(() => service.stop());
  const { client, db, database } = service;

  async function startNode() {
    const node = spawn(process.execPath, [path], {
      env: {
        ...process.env,
        DATABASE_URL: database.url,
        SIGNALBOX_MASTER_KEY: masterKey,
        SIGNALBOX_EGRESS_ALLOW: '127.0.0.1/32',
        SIGNALBOX_ROLES: 'runtime',
        SIGNALBOX_LOG_LEVEL: 'silent',
      },
    });
    onTestFinished(() => void node.kill('SIGKILL'));
    await once(node.stdout, 'data');
    return node;
  }

  const killed = await startNode();
  const owner = await setUp(service);
  const member = await join(owner, service, 'member', 'member');
  const { agentId } = await client.agents.create({
    name: 'Payer',
    model: {
      provider: 'scripted',
      model: 'x',
      settings: { script: [{ toolCalls: [{ name: 'pay' }] }, { text: 'Paid.' }] },
    },
    tools: [
      {
        type: 'http',
        name: 'pay',
        description: 'Pays.',
        inputSchema: { type: 'object' },
        request: { method: 'POST', url: `http://127.0.0.1:${(bank.address() as AddressInfo).port}` },
        approval: { policy: 'always', by: { people: true, count: 2 } },
      },
    ],
  });
  const { sessionId } = await client.sessions.open({ agentId, environment: 'production', input: 'go' });
  await expect.poll(async () => (await client.sessions.get(sessionId)).status).toBe('waiting');
  const [operationId] = (await client.sessions.get(sessionId)).waitingFor!.operationIds!;

  // From here on, no call starts: the statement that stores its start waits.
  await db.execute(sql`
    create function hold_start() returns trigger language plpgsql as
      'begin perform pg_advisory_xact_lock(4711); return new; end'`);
  await db.execute(sql`
    create trigger hold_start before update on operations
    for each row when (new.kind = 'tool' and new.status = 'running') execute function hold_start()`);
  const approve = (by: typeof owner) => by.api('POST', `/approvals/${operationId}/resolve`, { decision: 'approved' });
  await db.transaction(async (tx) => {
    await tx.query(sql`select pg_advisory_xact_lock(${LOCK})`);
    expect((await approve(owner)).json.approval).toMatchObject({ status: 'pending', progress: { approved: 1 } });
    expect((await approve(member)).json.approval).toMatchObject({ status: 'approved', progress: { approved: 2 } });
    const starting = sql`
      from pg_locks l join pg_database d on d.oid = l.database
      where d.datname = current_database() and l.locktype = 'advisory' and l.objid = ${LOCK} and not l.granted`;
    await expect.poll(async () => (await tx.query(sql`select l.pid ${starting}`)).length).toBe(1);
    killed.kill('SIGKILL');
    await once(killed, 'close');
    // Its connection, which would otherwise notice only after the statement.
    await tx.query(sql`select pg_terminate_backend(l.pid) ${starting}`);
  });
  expect(payments).toEqual([]);
  await db.execute(sql`drop function hold_start cascade`);
  await db.execute(sql`update nodes set lease_expires_at = now() - interval '1 minute'`);

  await startNode();
  const chunks: Chunk[] = [];
  for await (const { chunks: more } of client.sessions.stream(sessionId)) {
    chunks.push(...more);
    if (more.some((chunk) => chunk.type === 'session.status' && chunk.status === 'idle')) break;
  }
  expect(payments).toEqual([operationId]);
  expect(chunks.filter(({ type }) => type === 'tool.call')).toHaveLength(1);
  expect(chunks.filter(({ type }) => type === 'approval.resolved')).toHaveLength(1);
  expect(chunks.filter(({ type }) => type === 'tool.result')).toMatchObject([{ output: { paid: true } }]);
});
