// The server that npm has: its own command for development starts it in the same way, but also watches the files. The server for
// production is a Docker image with a license.
import { fileURLToPath } from 'node:url';
import { startServer } from '@langchain/langgraph-api/server';

const { host } = await startServer({
  host: '127.0.0.1',
  port: 0,
  // As many as its command for development has.
  nWorkers: 10,
  cwd: process.env.DATA_DIR,
  graphs: { bench: `${fileURLToPath(new URL('graph.mjs', import.meta.url))}:graph` },
});
process.send(`http://${host}`);
process.on('SIGTERM', () => process.exit());
