// A server of OpenAI's chat completions that streams as a fast model does: each response is 300 deltas of 8 bytes, 40 a second. A delta is
// the time at which it was sent, in milliseconds modulo ten million, and a space.
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DELTAS, INTERVAL_MS } from './streamed-model.ts';

const server = createServer((request, response) => {
  request.resume();
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  respond(response);
});

function respond(response: ServerResponse): void {
  let sent = 0;
  const timer = setInterval(() => {
    if (sent === DELTAS) {
      clearInterval(timer);
      const usage = { prompt_tokens: 10, completion_tokens: DELTAS, total_tokens: DELTAS + 10 };
      response.end(`${event({ delta: {}, finish_reason: 'stop' }, usage)}data: [DONE]\n\n`);
      return;
    }
    sent += 1;
    const content = `${String(Date.now() % 10_000_000).padStart(7, '0')} `;
    response.write(event({ delta: { content, ...(sent === 1 && { role: 'assistant' }) }, finish_reason: null }));
  }, INTERVAL_MS);
  response.on('close', () => clearInterval(timer));
}

function event(choice: object, usage: object | null = null): string {
  const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'streamed' };
  return `data: ${JSON.stringify({ ...head, choices: [{ index: 0, ...choice }], usage })}\n\n`;
}

process.once('SIGTERM', () => process.exit());
process.once('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => {
  process.send!(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`);
});
