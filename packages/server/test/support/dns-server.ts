// A name server on loopback. The test can change `records` at any time, because the server reads them for every query.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';

/** By lower-case name. IPv6 addresses are in full: eight groups of four digits. A missing name does not exist. */
export type DnsRecords = Record<string, DnsRecord | 'silent' | (() => DnsRecord)>;

interface DnsRecord {
  a?: string[];
  aaaa?: string[];
}

export interface DnsServer {
  /** Includes the port. */
  readonly address: string;
  /** The number of queries received. */
  questions(): number;
  close(): void;
}

const A = 1;
const POINTER_TO_QUESTION = 0xc00c;
const NO_ERROR = 0x8180;
const NO_SUCH_NAME = 0x8183;

/** Responds to A and AAAA queries. A record that is a function is called for every query. */
export async function startDnsServer(records: DnsRecords): Promise<DnsServer> {
  const socket = createSocket('udp4');
  let questions = 0;
  socket.on('message', (message, from) => {
    questions += 1;
    const labels: string[] = [];
    let offset = 12;
    for (let length = message[offset]!; length > 0; length = message[offset]!) {
      labels.push(message.toString('latin1', offset + 1, offset + 1 + length));
      offset += 1 + length;
    }
    const type = message.readUInt16BE(offset + 1);
    const found = records[labels.join('.').toLowerCase()];
    if (found === 'silent') return;
    const record = typeof found === 'function' ? found() : found;
    const answers = (type === A ? record?.a : record?.aaaa) ?? [];
    const header = Buffer.alloc(12);
    message.copy(header, 0, 0, 2);
    header.writeUInt16BE(record === undefined ? NO_SUCH_NAME : NO_ERROR, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(answers.length, 6);
    const question = message.subarray(12, offset + 5);
    const resources = answers.map((address) => resourceOf(type, address));
    socket.send(Buffer.concat([header, question, ...resources]), from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    questions: () => questions,
    close: () => socket.close(),
  };
}

function resourceOf(type: number, address: string): Buffer {
  const data =
    type === A ? Buffer.from(address.split('.').map(Number)) : Buffer.from(address.replaceAll(':', ''), 'hex');
  const head = Buffer.alloc(12);
  head.writeUInt16BE(POINTER_TO_QUESTION, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}
