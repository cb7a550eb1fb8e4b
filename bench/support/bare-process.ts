// The limit of `api-read`: a route that sends ready bytes after the same two queries, and does nothing else.
import Fastify from 'fastify';
import pg from 'pg';

const { DATABASE_URL, ORGANIZATION_ID, KEY_ID, BODY } = process.env;
// As many connections as the service has.
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 20 });
const app = Fastify();

app.get('/agents', async (_, reply) => {
  await pool.query({
    name: 'key',
    text: `
      select organization_id, key_id, name, permission, secret_hash, expires_at, last_used_at, deleted_at from api_keys
      where organization_id = $1 and key_id = $2`,
    values: [ORGANIZATION_ID, KEY_ID],
  });
  await pool.query({
    name: 'list',
    text: `
      select a.agent_id, a.version, v.definition, a.created_at, a.updated_at, a.archived_at from agents a
      join agent_versions v on v.organization_id = a.organization_id and v.agent_id = a.agent_id and v.version = a.version
      where a.organization_id = $1 and a.archived_at is null
      order by a.agent_id desc limit 21`,
    values: [ORGANIZATION_ID],
  });
  return reply.type('application/json; charset=utf-8').send(BODY);
});

process.once('SIGTERM', () => process.exit());
process.once('disconnect', () => process.exit());
process.send!(await app.listen({ port: 0, host: '127.0.0.1' }));
