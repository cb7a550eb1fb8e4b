// A service with nothing but an embedded PostgreSQL, for tests that kill it: `node embedded-service.ts DATA_DIR [PORT]`.
// Prints one JSON line, `{ "url" }` or `{ "error", "message" }`. On SIGINT it uses the database, says so and stops.
import { Client } from 'pg';
import { startEmbeddedPostgres } from '../../src/db/embedded.ts';

const [dataDir = '', port] = process.argv.slice(2);
const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);
const silent = { info() {}, error() {} };

try {
  const server = await startEmbeddedPostgres({ dataDir, log: silent, ...(port ? { port: Number(port) } : {}) });
  process.once('SIGINT', async () => {
    const client = new Client({ connectionString: server.url });
    await client.connect();
    await client.query('select 1');
    await client.end();
    say({ stillThere: true });
    await server.stop();
  });
  say({ url: server.url });
} catch (error) {
  say({ error: (error as Error).name, message: (error as Error).message });
}
