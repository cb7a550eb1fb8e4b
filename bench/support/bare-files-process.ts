// The limit of `files`: routes that write the body to PostgreSQL in pieces of 1 MiB and read it back, and do nothing else.
import { Readable } from 'node:stream';
import Fastify from 'fastify';
import pg from 'pg';
import { newUuid } from '../../packages/server/src/lib/ids.ts';

const PIECE_BYTES = 1024 * 1024;
// As many connections as the service has.
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 20 });
await pool.query(`
  create table if not exists bench_pieces (file_id uuid, position int, bytes bytea, primary key (file_id, position));
  alter table bench_pieces alter column bytes set storage external`);
const app = Fastify();
app.removeAllContentTypeParsers();
app.addContentTypeParser('*', (_request, _body, done) => done(null));

app.post('/files', async (request) => {
  const fileId = newUuid();
  let position = 0;
  let parts: Buffer[] = [];
  let size = 0;
  const write = async () => {
    await pool.query({
      name: 'write',
      text: 'insert into bench_pieces values ($1, $2, $3)',
      values: [fileId, position, Buffer.concat(parts)],
    });
    [parts, size] = [[], 0];
    position += 1;
  };
  for await (const chunk of request.raw as AsyncIterable<Buffer>) {
    parts.push(chunk);
    size += chunk.length;
    if (size >= PIECE_BYTES) await write();
  }
  if (size > 0) await write();
  return { file: { fileId } };
});

app.get<{ Params: { fileId: string } }>('/files/:fileId/content', async ({ params: { fileId } }, reply) => {
  async function* pieces() {
    for (let position = 0; ; position += 1) {
      const { rows } = await pool.query({
        name: 'read',
        text: 'select bytes from bench_pieces where file_id = $1 and position = $2',
        values: [fileId, position],
      });
      if (rows.length === 0) return;
      yield rows[0].bytes;
    }
  }
  return reply.type('application/octet-stream').send(Readable.from(pieces(), { objectMode: false }));
});

process.once('SIGTERM', () => process.exit());
process.once('disconnect', () => process.exit());
process.send!(await app.listen({ port: 0, host: '127.0.0.1' }));
