// A receiver of webhooks that reads requests and responds at once, except at /hang, where it never responds.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const server = createServer((request, response) => {
  request.resume();
  if (request.url !== '/hang') request.once('end', () => response.writeHead(200).end());
});
process.once('SIGTERM', () => process.exit());
process.once('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => process.send!(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`));
