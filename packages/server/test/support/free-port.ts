import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

// Below the ports that systems give to outgoing connections and to servers that leave the choice to them (32,768 on Linux, 49,152
// elsewhere): none of these can take a port between the search and its use.
const [FIRST, LAST] = [20_000, 32_000];

/** A free loopback port, for programs that do not report the port that they chose. */
export async function freePort(): Promise<number> {
  const server = createServer();
  for (;;) {
    const port = randomInt(FIRST, LAST);
    const isFree = once(server, 'listening').then(
      () => true,
      () => false,
    );
    server.listen(port, '127.0.0.1');
    if (!(await isFree)) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}
