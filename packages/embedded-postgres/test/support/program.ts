// A program that only runs PostgreSQL, for tests that kill it: `node program.ts DIRECTORY [PORT]`.
// Prints one JSON line, `{ "url" }` or `{ "error", "message" }`. On SIGINT it uses the database, reports it and stops.
import { Client } from 'pg';
import { startPostgres } from '../../src/index.ts';

const [directory = '', port] = process.argv.slice(2);
const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);

try {
  const names = { user: 'tester', database: 'app' };
  const server = await startPostgres({ directory, ...names, ...(port ? { port: Number(port) } : {}) });
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
